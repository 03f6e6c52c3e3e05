//! A request that finishes while others change its engine: C1, C3 and C8, whatever comes between what.

use super::Pair;
use super::changes::CHANGES;
use crate::Result;
use crate::scene::{PRESSED, Scene, TOKENS, ensure, named};
use headcount::{Engine, EngineState, EngineView, Options, Request, Table};
use headcount_tests::{Lead, Tracee};

/// A request that finishes on engine 0.
#[derive(Clone, Copy, Debug)]
struct Finish {
    name: &'static str,
    tokens: u32,
    table_capped: bool,
}

const FINISHES: [Finish; 3] = [
    Finish {
        name: "Finish",
        tokens: 0,
        table_capped: false,
    },
    Finish {
        name: "FinishTokens",
        tokens: TOKENS,
        table_capped: false,
    },
    Finish {
        name: "FinishTableCapped",
        tokens: TOKENS,
        table_capped: true,
    },
];

pub(super) fn pairs() -> Vec<Pair> {
    let changes = FINISHES
        .into_iter()
        .flat_map(|finish| CHANGES.map(|change| (finish, change)))
        .filter(|(finish, change)| finish.table_capped || !change.name.ends_with("InTable"));
    let against_changes = changes.map(|(finish, change)| {
        Pair::new(format!("{}-{}", finish.name, change.name), move |lead| {
            finish.against(change.prepare, change.act, lead)
        })
    });
    let others = [
        Pair::new("Finish-ReplaceIdle", replaced),
        Pair::new("Finish-ComesBack", comes_back),
        Pair::new("AddBack-Finish", finished_while_it_comes_back).every(3),
    ];
    against_changes.chain(others).collect()
}

impl Finish {
    fn options(self) -> Options {
        let options = Table::options().engines(3).max_engines(5);
        let options = options.max_frontends(4).threads(1);
        if self.table_capped {
            options.max_in_flight(9).max_tokens(9 * TOKENS)
        } else {
            options
        }
    }

    /// Two requests of others on engine 0, three on engine 1, none on engine 2, which is down.
    fn scene(self) -> Result<Scene> {
        let mut scene = Scene::new(&self.options())?;
        scene.pin(&[0, 0, 1, 1, 1])?;
        scene.table.down(2)?;
        Ok(scene)
    }

    /// The request is routed, and finishes as far as it is led.
    fn lead(self, scene: &Scene, lead: &mut Lead) -> Result<Tracee<()>> {
        let mut child = self.start(scene)?;
        lead.lead(&mut child)?;
        Ok(child)
    }

    fn start(self, scene: &Scene) -> Result<Tracee<()>> {
        let request = Request::new().pin(0).tokens(self.tokens);
        Ok(Tracee::fork(
            || {
                let frontend = scene.table.join().expect("joins");
                let permit = frontend.route_with(&request).expect("routes");
                (permit, frontend)
            },
            |(permit, frontend)| {
                drop(permit);
                frontend
            },
            std::mem::forget,
        )?)
    }

    fn against(
        self,
        prepare: fn(&mut Scene) -> Result<()>,
        act: fn(&mut Scene) -> Result<()>,
        lead: &mut Lead,
    ) -> Result<bool> {
        let mut scene = self.scene()?;
        let mut child = self.start(&scene)?;
        prepare(&mut scene)?;
        lead.lead(&mut child)?;
        let counted = self.is_counted(&scene);
        act(&mut scene)?;
        child.report()?;
        scene.counts_are_exact(&[])?;
        drop(child);
        scene.permits.clear();
        scene.ends_well()?;
        Ok(counted)
    }

    fn is_counted(self, scene: &Scene) -> bool {
        let view = scene.table.view();
        let in_flight: u32 = view.engines.iter().map(|engine| engine.in_flight).sum();
        in_flight as usize > scene.in_flight()
    }
}

/// C8: the only request of an engine finishes while another engine takes its place. The newcomer has
/// nothing in flight, ever.
fn replaced(lead: &mut Lead) -> Result<bool> {
    let finish = FINISHES[1];
    let mut scene = finish.scene()?;
    scene.finish(0, 2);
    let mut child = finish.lead(&scene, lead)?;
    let counted = finish.is_counted(&scene);
    scene.table.remove(0)?;
    scene.table.add(Engine::named("new"))?;
    let view = scene.table.view();
    let new = named(&view, "new").map(|engine| engine.in_flight);
    ensure(new == Some(0), || {
        format!("C8: the newcomer starts with {new:?} requests of another engine")
    })?;
    child.report()?;
    scene.counts_are_exact(&[])?;
    let view = scene.table.view();
    ensure(named(&view, "0").is_none(), || {
        format!("the removed engine is still there: {view:?}")
    })?;
    drop(child);
    scene.permits.clear();
    scene.ends_well()?;
    Ok(counted)
}

/// C8: an engine leaves and comes back while one of its requests finishes and another goes on. It is
/// the engine that it was: its totals and its statistics are still there.
fn comes_back(lead: &mut Lead) -> Result<bool> {
    let finish = FINISHES[1];
    let mut scene = finish.scene()?;
    scene.publish(&[PRESSED])?;
    let mut child = finish.lead(&scene, lead)?;
    let counted = finish.is_counted(&scene);
    scene.table.remove(0)?;
    scene.table.add(Engine::named("0"))?;
    child.report()?;
    scene.counts_are_exact(&[])?;
    let view = scene.table.view();
    let back = view.engine(0).cloned();
    let is_whole = back.as_ref().is_some_and(|engine| {
        let stats = engine.stats.map(|stats| stats.waiting);
        (
            engine.in_flight,
            engine.admitted_total,
            engine.finished_total,
            stats,
        ) == (2, 3, 1, Some(100))
    });
    ensure(is_whole, || {
        format!("C8: it came back as another engine: {back:?}")
    })?;
    drop(child);
    scene.permits.clear();
    scene.ends_well()?;
    Ok(counted)
}

/// C8: the last request of an engine that left finishes while the engine comes back.
fn finished_while_it_comes_back(lead: &mut Lead) -> Result<bool> {
    let mut scene = FINISHES[1].scene()?;
    scene.finish(0, 1);
    scene.table.remove(0)?;
    let mut child: Tracee<bool> = Tracee::fork(
        || scene.table.clone(),
        |table| table.add(Engine::named("0")),
        |added| added.is_ok(),
    )?;
    lead.lead(&mut child)?;
    let view = scene.table.view();
    let is_back = named(&view, "0").is_some_and(|e| e.state == EngineState::Active);
    scene.finish(0, 1);
    ensure(child.report()?, || "it did not come back".into())?;
    scene.counts_are_exact(&[])?;
    let view = scene.table.view();
    let names = view.engines.iter().filter(|engine| engine.name == "0");
    let is_open = |engine: &EngineView| engine.state == EngineState::Active;
    let as_it_should = names.count() == 1 && named(&view, "0").is_some_and(is_open);
    ensure(as_it_should, || format!("C8: {:?}", view.engines))?;
    drop(child);
    scene.permits.clear();
    scene.ends_well()?;
    Ok(!is_back)
}
