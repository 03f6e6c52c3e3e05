//! What another process does while a request is placed or finished.

use crate::Result;
use crate::scene::{CALM, PRESSED, Scene, TOKENS, ensure};
use headcount::{Engine, EngineState, Permit, RouteError, Table};
use headcount_tests::Tracee;

/// Something that another process does, and what it needs for it.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) name: &'static str,
    /// Makes the scene ready for it.
    pub(crate) prepare: fn(&mut Scene) -> Result<()>,
    pub(crate) act: fn(&mut Scene) -> Result<()>,
    pub(crate) promise: Promise,
}

/// What holds once a change has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promise {
    /// No request is placed by what was before it.
    Acted,
    /// The same, except that a request that found no room may still be refused, since it does not try again.
    Room,
    /// A request that was about to be counted may still be placed by what was before: the engine that it
    /// was to be counted on has not changed, and another one has become less loaded.
    Exact,
}

const NOTHING: fn(&mut Scene) -> Result<()> = |_| Ok(());

pub(super) const fn change(name: &'static str, act: fn(&mut Scene) -> Result<()>) -> Change {
    Change {
        name,
        prepare: NOTHING,
        act,
        promise: Promise::Acted,
    }
}

impl Change {
    pub(super) const fn after(mut self, prepare: fn(&mut Scene) -> Result<()>) -> Self {
        self.prepare = prepare;
        self
    }

    pub(super) const fn only_room(mut self) -> Self {
        self.promise = Promise::Room;
        self
    }

    const fn only_exact(mut self) -> Self {
        self.promise = Promise::Exact;
        self
    }
}

/// In a scene with two requests on engine 0 and three on engine 1, and an idle engine 2 that takes none.
pub(crate) const CHANGES: [Change; 36] = [
    // More than on engine 1, and one place less than the table's cap leaves: a request that is stopped
    // between its engine and the end of its placing has two.
    change("Pin", |scene| scene.pin(&[0, 0])),
    change("PinOther", |scene| scene.pin(&[1, 1])),
    // C2, from two idle engines: they must end with one request each.
    change("TieAndPin0", |scene| scene.pin(&[0])).after(empty),
    change("TieAndPin1", |scene| scene.pin(&[1])).after(empty),
    change("Finish", |scene| {
        scene.finish(0, 1);
        Ok(())
    }),
    change("FinishOther", |scene| {
        scene.finish(1, 2);
        Ok(())
    })
    .only_exact(),
    change("Drain", |scene| Ok(scene.table.drain(0)?)),
    change("Down", |scene| Ok(scene.table.down(0)?)),
    change("Up", |scene| Ok(scene.table.up(2)?)),
    // Another process has died right after engine 2 came up, and before it had told of that.
    change("UpAfterDeathInUp", |scene| {
        die_in_up(scene)?;
        Ok(scene.table.up(2)?)
    }),
    change("DrainLast", |scene| Ok(scene.table.drain(0)?))
        .after(|scene| Ok(scene.table.down(1)?)),
    change("Add", |scene| {
        Ok(scene.table.add(Engine::named("new")).map(drop)?)
    }),
    change("Remove", |scene| Ok(scene.table.remove(0).map(drop)?)),
    // It starts from what is in flight.
    change("RemoveAndAdd", |scene| {
        scene.table.remove(0)?;
        Ok(scene.table.add(Engine::named("0")).map(drop)?)
    }),
    // What left has requests in flight, so the newcomer has another slot.
    change("Replace", |scene| {
        scene.table.remove(0)?;
        Ok(scene.table.add(Engine::named("new")).map(drop)?)
    }),
    change("LowerWeight", |scene| Ok(scene.table.set_weight(0, 0.5)?)),
    change("RaiseWeight", |scene| Ok(scene.table.set_weight(1, 2.0)?)),
    change("LowerCap", |scene| {
        Ok(scene.table.set_caps(0, Some(2), None)?)
    }),
    change("RaiseCap", |scene| {
        Ok(scene.table.set_caps(2, None, None)?)
    })
    .after(|scene| {
        scene.table.set_caps(2, Some(0), None)?;
        Ok(scene.table.up(2)?)
    }),
    change("RaiseTokenCap", |scene| {
        Ok(scene.table.set_caps(2, None, None)?)
    })
    .after(|scene| {
        scene.table.set_caps(2, None, Some(0))?;
        Ok(scene.table.up(2)?)
    }),
    // C4: what is left of an engine's cap is taken.
    change("LastPlace", last_place)
        .after(|scene| Ok(scene.table.set_caps(0, Some(3), Some(30))?)),
    change("LastPlaceOfAll", last_place).after(|scene| {
        scene.table.down(1)?;
        Ok(scene.table.set_caps(0, Some(3), Some(30))?)
    }),
    // C4: what is left of the table's cap is taken.
    change("LastPlaceInTable", last_place).after(|scene| scene.pin(&[1, 1, 1])),
    // C5: tokens of a request on engine 0 change; what is left of the engine's cap, or of the table's, is taken.
    change("LastTokens", |scene| grow(scene, 0, TOKENS))
        .after(|scene| Ok(scene.table.set_caps(0, None, Some(3 * TOKENS))?)),
    change("LastTokensInTable", |scene| grow(scene, 1, TOKENS))
        .after(|scene| scene.pin(&[1, 1, 1])),
    change(
        "GiveTokensBack",
        |scene| Ok(scene.permits[0].set_tokens(1)?),
    ),
    // C4: the first cap that the table has is what is in flight, or leaves one place, which is taken.
    change("ApplyFirstCap", |scene| cap_the_table(scene, 5)),
    change("ApplyFirstCapAndLastPlace", |scene| {
        cap_the_table(scene, 6)?;
        last_place_on(scene, 1)
    }),
    change("ApplyLowerTableCap", |scene| cap_the_table(scene, 5)),
    change("ApplyRaiseTableCap", |scene| cap_the_table(scene, 9))
        .after(|scene| cap_the_table(scene, 5))
        .only_room(),
    change("Publish", |scene| scene.publish(&[PRESSED, CALM, CALM])).only_exact(),
    change("PublishOften", |scene| {
        (0..5).try_for_each(|_| scene.publish(&[PRESSED, CALM, CALM]))
    })
    .only_exact(),
    change("Reap", Scene::reap).after(|scene| {
        scene.finish(0, 1);
        scene.leave_dead(&[0])
    }),
    change("ReapOther", Scene::reap)
        .after(|scene| {
            scene.finish(1, 2);
            scene.leave_dead(&[1, 1])
        })
        .only_exact(),
    change("JoinAndLeave", |scene| Ok(scene.table.join().map(drop)?)),
    change("Leave", |scene| {
        let own = scene.table.join()?;
        let other = std::mem::replace(&mut scene.own, own);
        scene.permits.clear();
        drop(other);
        Ok(())
    })
    .only_exact(),
];

fn empty(scene: &mut Scene) -> Result<()> {
    scene.permits.clear();
    Ok(())
}

/// Has a process brought engine 2 up that dies at that very instruction.
fn die_in_up(scene: &Scene) -> Result<()> {
    let up = || scene.table.up(2).expect("comes up");
    let mut child: Tracee<()> = Tracee::fork(|| (), |()| up(), |()| ())?;
    let is_up = || {
        let view = scene.table.view();
        view.engine(2)
            .is_some_and(|e| e.state == EngineState::Active)
    };
    while !is_up() {
        ensure(child.step()?, || "it ended and the engine is not up".into())?;
    }
    Ok(())
}

/// Brings the table to caps of its own, and leaves its engines.
fn cap_the_table(scene: &mut Scene, requests: u32) -> Result<()> {
    let caps = Table::options().max_in_flight(requests);
    let changes = scene.table.apply(&caps.max_tokens(requests * TOKENS))?;
    ensure(!changes.is_empty(), || "nothing was changed".into())
}

/// Adds tokens to a request of an engine, unless the request of the first process has them.
pub(super) fn grow(scene: &mut Scene, engine: usize, more: u32) -> Result<()> {
    let on_engine = |permit: &&mut Permit| permit.engine().index() == engine;
    let permit = (scene.permits.iter_mut().find(on_engine)).ok_or("it has a request")?;
    match permit.set_tokens(permit.tokens() + more) {
        Ok(()) | Err(RouteError::Saturated { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes the last place that engine 0 may have, unless the request of the first process has it.
fn last_place(scene: &mut Scene) -> Result<()> {
    last_place_on(scene, 0)
}

fn last_place_on(scene: &mut Scene, engine: usize) -> Result<()> {
    match scene.pin(&[engine]) {
        Err(error) if matches!(error.downcast_ref(), Some(RouteError::Saturated { .. })) => Ok(()),
        result => result,
    }
}
