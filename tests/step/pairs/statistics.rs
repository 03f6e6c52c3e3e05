//! A newcomer in the slot of an engine that left is not shown the statistics of that engine.

use super::Pair;
use crate::Result;
use crate::scene::{PRESSED, Scene, ensure, named};
use headcount::{Engine, PackedEngineStats, Table};
use headcount_tests::{Lead, Tracee};

pub(super) fn pairs() -> Vec<Pair> {
    vec![
        Pair::new("AddInPlace-ReadStats", read_while_it_arrives).every(3),
        Pair::new("ReadStats-Replace", arrives_while_stats_are_read),
        Pair::new("View-Replace", arrives_while_viewed).every(3),
    ]
}

/// Two engines, both pressed.
fn scene() -> Result<Scene> {
    let options = Table::options().engines(2).max_engines(2);
    let mut scene = Scene::new(&options.max_frontends(2).threads(0))?;
    scene.publish(&[PRESSED; 2])?;
    Ok(scene)
}

fn running(table: &Table) -> [u32; 2] {
    let mut stats = [PackedEngineStats::default(); 2];
    table.read_stats(&mut stats);
    stats.map(PackedEngineStats::running)
}

/// Fails unless the newcomer, if it is there, is shown as idle by each way to read.
fn newcomer_is_idle(table: &Table) -> Result<bool> {
    let view = table.view();
    let Some(new) = named(&view, "new") else {
        return Ok(false);
    };
    let running = running(table);
    ensure(running == [0, 100] && new.stats.is_none(), || {
        format!("the newcomer has the statistics of another: {running:?}, {new:?}")
    })?;
    Ok(true)
}

fn read_while_it_arrives(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    scene.table.remove(0)?;
    let mut child: Tracee<bool> = Tracee::fork(
        || scene.table.clone(),
        |table| table.add(Engine::named("new")),
        |added| added.is_ok(),
    )?;
    lead.lead(&mut child)?;
    let is_there = newcomer_is_idle(&scene.table)?;
    ensure(child.report()?, || "it was not added".into())?;
    ensure(newcomer_is_idle(&scene.table)?, || "it is not there".into())?;
    drop(child);
    scene.ends_well()?;
    Ok(!is_there)
}

fn replace(scene: &Scene) -> Result<()> {
    scene.table.remove(0)?;
    scene.table.add(Engine::named("new"))?;
    Ok(())
}

fn arrives_while_stats_are_read(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child: Tracee<[u32; 2]> = Tracee::fork(
        || scene.table.clone(),
        |table| running(&table),
        |found| found,
    )?;
    lead.lead(&mut child)?;
    replace(&scene)?;
    let found = child.report()?;
    let fits = match lead.instructions() {
        0 => found == [0, 100],
        _ => found == [0, 100] || found == [100, 100],
    };
    ensure(fits, || format!("read was {found:?}"))?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}

/// What a view shows of slot 0: the name, and what runs there.
type Seen = Option<(String, Option<u32>)>;

fn arrives_while_viewed(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child: Tracee<Seen> = Tracee::fork(
        || scene.table.clone(),
        |table| table.view(),
        |view| {
            let engine = view.engine(0)?;
            Some((engine.name.clone(), engine.stats.map(|stats| stats.running)))
        },
    )?;
    lead.lead(&mut child)?;
    replace(&scene)?;
    let seen = child.report()?;
    let fits = match &seen {
        None => lead.instructions() > 0,
        Some((name, stats)) if name == "new" => stats.is_none(),
        Some((name, _)) => lead.instructions() > 0 && ["", "0"].contains(&name.as_str()),
    };
    ensure(fits, || {
        format!("the newcomer is shown with the statistics of another: {seen:?}")
    })?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}
