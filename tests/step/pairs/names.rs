//! A slot is given to an engine of another long name: a reader sees the one or the other, or none, and
//! never parts of both.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, ensure};
use headcount::{Engine, Table};
use headcount_tests::{Lead, Tracee};
use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// The length of the names, each of one letter.
const LENGTH: usize = 200;

/// How much of a name is written where its writer is stopped: some of the words that it is written in.
const HALF: usize = 104;

pub(super) fn pairs() -> Vec<Pair> {
    let half_way = [
        Pair::new("View-RenameHalfway", |lead| {
            half_renamed_while_viewed(false, lead)
        })
        .every(13),
        Pair::new("View-RenameHalfwayAfterDeath", |lead| {
            half_renamed_while_viewed(true, lead)
        })
        .every(13),
        Pair::new("Find-RenameHalfway", |lead| {
            half_renamed_while_found(false, lead)
        })
        .every(7),
        Pair::new("Find-RenameHalfwayAfterDeath", |lead| {
            half_renamed_while_found(true, lead)
        })
        .every(7),
    ];
    let others = vec![
        Pair::new("Rename-View", viewed_while_renamed).every(7),
        Pair::new("View-Rename", renamed_while_viewed).every(7),
        Pair::new("Find-Rename", renamed_while_found).every(3),
    ];
    others.into_iter().chain(half_way).collect()
}

fn name(letter: &str) -> String {
    letter.repeat(LENGTH)
}

fn scene() -> Result<Scene> {
    let options = Table::options().engine(Engine::named(name("a")));
    let options = options.max_engines(2).max_frontends(2).threads(0);
    Scene::new(&options)
}

/// The name that a view shows of the slot.
fn shown(table: &Table) -> Option<String> {
    let view = table.view();
    view.engine(0).map(|engine| engine.name.clone())
}

/// Fails if it is none of the names. A slot whose name changes has none.
fn is_whole(shown: Option<&str>) -> Result<()> {
    let whole = shown.is_none_or(|shown| {
        shown.is_empty() || ["a", "b", "c"].iter().any(|letter| shown == name(letter))
    });
    ensure(whole, || format!("a torn name was shown: {shown:?}"))
}

/// A child that is about to give the slot, which is free, to the engine of that name.
fn adder(table: &Table, letter: &str) -> Result<Tracee<bool>> {
    Ok(Tracee::fork(
        || (table.clone(), Engine::named(name(letter))),
        |(table, engine)| table.add(&engine),
        |added| added.is_ok(),
    )?)
}

fn viewed_while_renamed(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    scene.table.remove(0)?;
    let mut child = adder(&scene.table, "b")?;
    lead.lead(&mut child)?;
    let seen = shown(&scene.table);
    ensure(seen.is_none() || seen == Some(name("b")), || {
        format!("a torn name was shown: {seen:?}")
    })?;
    let found = scene.table.find(&name("b"));
    ensure(found.is_some() == seen.is_some(), || {
        format!("found was {found:?}, where a view shows {seen:?}")
    })?;
    ensure(scene.table.find(&name("a")).is_none(), || {
        "the engine that left was found".into()
    })?;
    ensure(child.report()?, || "it was not added".into())?;
    ensure(shown(&scene.table) == Some(name("b")), || {
        "it has another name".into()
    })?;
    drop(child);
    scene.ends_well()?;
    Ok(seen.is_none())
}

fn viewer(scene: &Scene) -> Result<Tracee<Option<String>>> {
    Ok(Tracee::fork(
        || scene.table.clone(),
        |table| table.view(),
        |view| view.engine(0).map(|engine| engine.name.clone()),
    )?)
}

fn renamed_while_viewed(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = viewer(&scene)?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    scene.table.add(Engine::named(name("b")))?;
    let seen = child.report()?;
    is_whole(seen.as_deref())?;
    ensure(lead.instructions() > 0 || seen == Some(name("b")), || {
        format!("after the change had returned, {seen:?} was shown")
    })?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}

thread_local! {
    /// The instruction before which a name is half written, and how often a child is there before that. To be
    /// found once.
    static HALF_WAY: OnceCell<(u64, usize)> = const { OnceCell::new() };
}

/// A child that is stopped in the middle of giving the slot, which is free, that name.
fn half_way(table: &Table, letter: &str) -> Result<Tracee<bool>> {
    let mut child = adder(table, letter)?;
    if let Some((position, passes)) = HALF_WAY.with(|known| known.get().copied()) {
        let comes_there = child.run_to(position, passes)?;
        ensure(comes_there && is_half_written(table, letter)?, || {
            "it was not half-way where another one was".into()
        })?;
        return Ok(child);
    }
    let mut positions = Vec::new();
    while !is_half_written(table, letter)? {
        positions.extend(child.position()?);
        ensure(child.step()?, || "it never was half-way".into())?;
    }
    if let Some(position) = child.position()? {
        let passes = positions.iter().filter(|&&other| other == position);
        let found = (position, passes.count());
        HALF_WAY.with(|known| known.set(found).ok());
    }
    Ok(child)
}

/// Whether the file has so much of a name and no more.
fn is_half_written(table: &Table, letter: &str) -> Result<bool> {
    let file = File::from(table.as_fd().try_clone_to_owned()?);
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    // Other bytes of the file may happen to be that letter.
    let longest = bytes
        .split(|byte| *byte != letter.as_bytes()[0])
        .map(<[u8]>::len)
        .max();
    Ok(longest == Some(HALF))
}

/// Leaves the slot, which is free, to a child that is stopped half-way in giving it the name b. With
/// `after_death` it has to do that again: another has died there.
fn half_renamed(table: &Table, after_death: bool) -> Result<Tracee<bool>> {
    if after_death {
        drop(half_way(table, "c")?);
    }
    half_way(table, "b")
}

/// Three processes: while the first views the table, the second is stopped in the middle of writing the
/// name.
fn half_renamed_while_viewed(after_death: bool, lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut viewer = viewer(&scene)?;
    lead.lead(&mut viewer)?;
    scene.table.remove(0)?;
    let mut renamer = half_renamed(&scene.table, after_death)?;
    let seen = viewer.report()?;
    is_whole(seen.as_deref())?;
    ensure(renamer.report()?, || "it was not added".into())?;
    drop((viewer, renamer));
    scene.ends_well()?;
    // It saw the slot before the name changed.
    Ok(seen.is_some())
}

fn renamed_while_found(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child: Tracee<bool> = Tracee::fork(
        || (scene.table.clone(), name("a")),
        |(table, name)| table.find(&name),
        |found| found.is_some(),
    )?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    scene.table.add(Engine::named(name("b")))?;
    let found = child.report()?;
    let fits = !found || lead.instructions() > 0;
    ensure(fits, || "the engine that left was found".into())?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}

/// Three processes: the first searches for the text that the slot has while its name is half written, and the second
/// is stopped there. No engine has that name.
fn half_renamed_while_found(after_death: bool, lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let torn = "b".repeat(HALF) + &"a".repeat(LENGTH - HALF);
    let mut child: Tracee<bool> = Tracee::fork(
        || scene.table.clone(),
        |table| table.find(&torn),
        |found| found.is_some(),
    )?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    let mut renamer = half_renamed(&scene.table, after_death)?;
    ensure(!child.report()?, || {
        "an engine was found by parts of two names".into()
    })?;
    ensure(renamer.report()?, || "it was not added".into())?;
    drop((child, renamer));
    scene.ends_well()?;
    Ok(true)
}
