//! Two processes change the list of engines: they exclude each other, and nothing of what either has done
//! is lost.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, ensure, named};
use headcount::{Engine, EngineState, EngineView, Table, View};
use headcount_tests::{Forked, Lead, Tracee};

/// A change of the list.
type Change = fn(&Table) -> headcount::Result<()>;

/// The results of two changes, and the table after them.
struct Outcome {
    first: Done,
    second: Done,
    view: View,
}

type Done = std::result::Result<(), String>;

/// Two changes that wait for each other.
struct Waiting {
    name: &'static str,
    first: Change,
    second: Change,
    holds: fn(&Outcome) -> bool,
}

const WAITING: [Waiting; 7] = [
    Waiting {
        name: "Add-AddSame",
        first: |table| table.add(Engine::named("x")).map(drop),
        second: |table| table.add(Engine::named("x")).map(drop),
        holds: |outcome| match (&outcome.first, &outcome.second) {
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => error.starts_with("NameTaken"),
            _ => false,
        },
    },
    Waiting {
        name: "Add-AddOther",
        first: |table| table.add(Engine::named("x")).map(drop),
        second: |table| table.add(Engine::named("y")).map(drop),
        holds: |outcome| {
            outcome.first.is_ok()
                && is_there(&outcome.view, "x")
                && outcome.second.is_ok()
                && is_there(&outcome.view, "y")
        },
    },
    Waiting {
        name: "Add-Remove",
        first: |table| table.add(Engine::named("x")).map(drop),
        second: |table| table.remove(0).map(drop),
        holds: |outcome| {
            outcome.first.is_ok()
                && is_there(&outcome.view, "x")
                && outcome.second.is_ok()
                && named(&outcome.view, "0").is_none()
        },
    },
    Waiting {
        name: "Remove-Add",
        first: |table| table.remove(0).map(drop),
        second: |table| table.add(Engine::named("x")).map(drop),
        holds: |outcome| {
            outcome.second.is_ok()
                && is_there(&outcome.view, "x")
                && outcome.first.is_ok()
                && named(&outcome.view, "0").is_none()
        },
    },
    Waiting {
        name: "SetCaps-SetWeight",
        first: |table| table.set_caps(0, Some(5), Some(500)),
        second: |table| table.set_weight(0, 3.0),
        holds: has_caps_and_weight,
    },
    Waiting {
        name: "SetWeight-SetCaps",
        first: |table| table.set_weight(0, 3.0),
        second: |table| table.set_caps(0, Some(5), Some(500)),
        holds: has_caps_and_weight,
    },
    Waiting {
        name: "SetCaps-Remove",
        first: |table| table.set_caps(0, Some(5), None),
        second: |table| table.remove(0).map(drop),
        holds: |outcome| outcome.second.is_ok() && named(&outcome.view, "0").is_none(),
    },
];

/// A change, and another that waits for no other process and returns at once.
struct Free {
    name: &'static str,
    prepare: fn(&Table) -> headcount::Result<()>,
    first: Change,
    second: Change,
    /// The final state of engine 0, by whether the second change succeeded.
    then: fn(bool) -> Option<EngineState>,
}

const FREE: [Free; 8] = [
    Free {
        name: "Up-Remove",
        prepare: |table| table.down(0),
        first: |table| table.up(0),
        second: |table| table.remove(0).map(drop),
        then: |_| None,
    },
    Free {
        name: "Drain-Remove",
        prepare: |_| Ok(()),
        first: |table| table.drain(0),
        second: |table| table.remove(0).map(drop),
        then: |_| None,
    },
    Free {
        name: "DownIfActive-Drain",
        prepare: |_| Ok(()),
        first: |table| table.down_if_active(0).map(drop),
        second: |table| table.drain(0),
        then: |_| Some(EngineState::Draining),
    },
    Free {
        name: "UpIfDown-Drain",
        prepare: |table| table.down(0),
        first: |table| table.up_if_down(0).map(drop),
        second: |table| table.drain(0),
        then: |_| Some(EngineState::Draining),
    },
    Free {
        name: "SetCaps-Drain",
        prepare: |_| Ok(()),
        first: |table| table.set_caps(0, Some(5), None),
        second: |table| table.drain(0),
        then: |_| Some(EngineState::Draining),
    },
    Free {
        name: "Remove-Drain",
        prepare: |_| Ok(()),
        first: |table| table.remove(0).map(drop),
        second: |table| table.drain(0),
        then: |_| None,
    },
    Free {
        name: "FindAndDrain-Replace",
        prepare: |_| Ok(()),
        first: |table| table.find("0").map_or(Ok(()), |found| table.drain(found)),
        second: |table| {
            table.remove(0)?;
            table.add(Engine::named("new")).map(drop)
        },
        // Whichever engine was drained, it was not the new one.
        then: |_| Some(EngineState::Active),
    },
    Free {
        name: "AddBack-Drain",
        prepare: |table| table.remove(0).map(drop),
        first: |table| table.add(Engine::named("0")).map(drop),
        second: |table| table.drain(0),
        then: |drained| {
            Some(if drained {
                EngineState::Draining
            } else {
                EngineState::Active
            })
        },
    },
];

pub(super) fn pairs() -> Vec<Pair> {
    let waiting = WAITING
        .into_iter()
        .map(|pair| Pair::new(pair.name, move |lead| pair.point(lead)).every(7));
    let free = FREE
        .into_iter()
        .map(|pair| Pair::new(pair.name, move |lead| pair.point(lead)).every(3));
    waiting.chain(free).collect()
}

fn scene() -> Result<Scene> {
    let options = Table::options().engines(2).max_engines(5);
    Scene::new(&options.max_frontends(2).threads(0))
}

fn done(result: headcount::Result<()>) -> Done {
    result.map_err(|error| format!("{error:?}"))
}

fn changer(table: &Table, change: Change) -> Result<Tracee<Done>> {
    Ok(Tracee::fork(
        || table.clone(),
        |table| change(&table),
        done,
    )?)
}

fn is_there(view: &View, name: &str) -> bool {
    named(view, name).is_some_and(|engine| engine.state == EngineState::Active)
}

fn has_caps_and_weight(outcome: &Outcome) -> bool {
    let as_set = |engine: &EngineView| {
        let caps = (engine.max_in_flight, engine.max_tokens);
        caps == (Some(5), Some(500)) && engine.weight == 3.0
    };
    outcome.view.engine(0).is_some_and(as_set)
}

/// Fails if two engines have the same name.
fn names_are_of_one(view: &View) -> Result<()> {
    let is_double = |engine: &EngineView| {
        let same = view
            .engines
            .iter()
            .filter(|other| other.name == engine.name);
        same.count() > 1
    };
    let double = view.engines.iter().find(|engine| is_double(engine));
    ensure(double.is_none(), || {
        format!("two engines are named alike: {double:?}")
    })
}

impl Waiting {
    /// The second is kept waiting while the first is stopped in its change, and returns after it.
    fn point(&self, lead: &mut Lead) -> Result<bool> {
        let scene = scene()?;
        let mut child = changer(&scene.table, self.first)?;
        lead.lead(&mut child)?;
        let mut other: Forked<Done> = Forked::start(|| done((self.second)(&scene.table)))?;
        let waited = other.is_kept_waiting()?;
        if waited {
            child.finish()?;
        }
        let second = other.report()?;
        let outcome = Outcome {
            first: child.report()?,
            second,
            view: scene.table.view(),
        };
        names_are_of_one(&outcome.view)?;
        ensure((self.holds)(&outcome), || {
            let Outcome {
                first,
                second,
                view,
            } = &outcome;
            format!("{first:?} and {second:?} came to {:?}", view.engines)
        })?;
        drop((child, other));
        scene.ends_well()?;
        Ok(waited)
    }
}

impl Free {
    fn point(&self, lead: &mut Lead) -> Result<bool> {
        let scene = scene()?;
        (self.prepare)(&scene.table)?;
        let mut child = changer(&scene.table, self.first)?;
        lead.lead(&mut child)?;
        let second = (self.second)(&scene.table);
        let first = child.report()?;
        let view = scene.table.view();
        let found = view.engine(0).map(|engine| engine.state);
        let expected = (self.then)(second.is_ok());
        ensure(found == expected, || {
            format!("{first:?} and {second:?} came to {found:?}, and should to {expected:?}")
        })?;
        drop(child);
        scene.ends_well()?;
        Ok(true)
    }
}
