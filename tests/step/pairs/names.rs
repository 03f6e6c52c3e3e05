//! A slot is given to an engine of another long name: a reader sees the one or the other, or none, and
//! never parts of both.

use super::Pair;
use crate::Result;
use crate::lead::Lead;
use crate::scene::{Scene, ensure};
use headcount::{Engine, Table};
use headcount_tests::Tracee;
use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// The names: so many of one letter.
const LENGTH: usize = 200;

pub(super) fn pairs() -> Vec<Pair> {
    let half_way = Cell::new(None);
    vec![
        Pair::new("Rename-View", viewed_while_renamed).every(3),
        Pair::new("View-Rename", renamed_while_viewed),
        Pair::new("View-RenameHalfway", move |lead| {
            half_renamed_while_viewed(&half_way, lead)
        })
        .every(5),
        Pair::new("Find-Rename", renamed_while_found),
    ]
}

fn name(letter: &str) -> String {
    letter.repeat(LENGTH)
}

fn scene() -> Result<Scene> {
    let options = Table::options().engine(Engine::named(name("a")));
    let options = options.max_engines(2).max_frontends(2).lanes(1);
    Scene::new(&options)
}

/// The name that a view shows of the slot.
fn shown(table: &Table) -> Option<String> {
    let view = table.snapshot();
    view.engine(0).map(|engine| engine.name.clone())
}

/// Fails if it is neither of the two names. A slot whose name changes has none.
fn is_whole(shown: Option<&str>) -> Result<()> {
    let whole = shown.is_none_or(|shown| {
        shown.is_empty() || shown == name("a") || shown == name("b")
    });
    ensure(whole, || format!("a torn name was shown: {shown:?}"))
}

/// A child that is about to give the slot, which is free, to the other engine.
fn adder(scene: &Scene) -> Result<Tracee<Option<usize>>> {
    Ok(Tracee::fork(
        || (scene.table.clone(), Engine::named(name("b"))),
        |(table, engine)| table.add(&engine),
        |added| added.ok(),
    )?)
}

fn viewed_while_renamed(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    scene.table.remove(0)?;
    let mut child = adder(&scene)?;
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
    ensure(child.report()? == Some(0), || "it was not added".into())?;
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
        |table| table.snapshot(),
        |view| view.engine(0).map(|engine| engine.name.clone()),
    )?)
}

fn renamed_while_viewed(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = viewer(&scene)?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    scene.table.add(&Engine::named(name("b")))?;
    let seen = child.report()?;
    is_whole(seen.as_deref())?;
    ensure(lead.instructions() > 0 || seen == Some(name("b")), || {
        format!("after the change had returned, {seen:?} was shown")
    })?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}

/// Whether the table's file holds parts of both names.
fn is_half_way(file: &File) -> Result<bool> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let count = |letter| bytes.iter().filter(|byte| **byte == letter).count();
    Ok(count(b'a') > LENGTH / 4 && count(b'b') > LENGTH / 4)
}

/// Three processes: while one views the table, the second is stopped in the middle of writing the name.
/// `half_way` keeps how far that is.
fn half_renamed_while_viewed(half_way: &Cell<Option<usize>>, lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let file = File::from(scene.table.as_fd().try_clone_to_owned()?);
    let mut child = viewer(&scene)?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    let mut renamer = adder(&scene)?;
    // The last steps one by one, for the way there is not always equally long.
    const LAST: usize = 20;
    for _ in LAST..half_way.get().unwrap_or(0) {
        renamer.step()?;
    }
    let mut steps = half_way.get().unwrap_or(0).saturating_sub(LAST);
    while !is_half_way(&file)? {
        ensure(renamer.step()?, || "it never was half-way".into())?;
        steps += 1;
    }
    half_way.set(Some(steps));
    let seen = child.report()?;
    is_whole(seen.as_deref())?;
    ensure(renamer.report()? == Some(0), || "it was not added".into())?;
    drop((child, renamer));
    scene.ends_well()?;
    // It saw the slot before the name changed.
    Ok(seen.is_some())
}

fn renamed_while_found(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child: Tracee<Option<usize>> = Tracee::fork(
        || (scene.table.clone(), name("a")),
        |(table, name)| table.find(&name),
        |found| found,
    )?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    scene.table.add(&Engine::named(name("b")))?;
    let found = child.report()?;
    let fits = found.is_none() || found == Some(0) && lead.instructions() > 0;
    ensure(fits, || format!("the engine that left was found: {found:?}"))?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}
