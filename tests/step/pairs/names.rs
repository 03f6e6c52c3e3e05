//! A slot is given to an engine of another long name: a reader sees the one or the other, or none, and
//! never parts of both.

use super::Pair;
use crate::Result;
use crate::lead::Lead;
use crate::scene::{Scene, ensure};
use headcount::{Engine, Table};
use headcount_tests::Tracee;
use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// The names: so many of one letter.
const LENGTH: usize = 200;

/// How much of a name is written where its writer is stopped: some of the words that it is written in.
const HALF: usize = 104;

pub(super) fn pairs() -> Vec<Pair> {
    let once = RefCell::new(HalfWay::writing("b"));
    let found = RefCell::new(HalfWay::writing("b"));
    let twice = RefCell::new(["b", "c"].map(HalfWay::writing));
    let half_way = [
        Pair::new("View-RenameHalfway", move |lead| {
            half_renamed_while_viewed(&mut once.borrow_mut(), lead)
        })
        .every(11),
        Pair::new("Find-RenameHalfway", move |lead| {
            half_renamed_while_found(&mut found.borrow_mut(), lead)
        })
        .every(5),
        Pair::new("View-RenameHalfwayAfterDeath", move |lead| {
            half_renamed_again_while_viewed(&mut twice.borrow_mut(), lead)
        })
        .every(11),
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
    let options = options.max_engines(2).max_frontends(2).lanes(1);
    Scene::new(&options)
}

/// The name that a view shows of the slot.
fn shown(table: &Table) -> Option<String> {
    let view = table.snapshot();
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

/// Whether half of a name, and no more, stands in the table's file.
fn is_half_way(table: &Table, letter: u8) -> Result<bool> {
    let file = File::from(table.as_fd().try_clone_to_owned()?);
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let written = bytes.iter().filter(|byte| **byte == letter).count();
    Ok(written == HALF)
}

/// One that is in the middle of writing a name.
struct HalfWay {
    letter: &'static str,
    /// How it comes there, once that is known.
    lead: Option<Lead>,
}

impl HalfWay {
    fn writing(letter: &'static str) -> Self {
        Self { letter, lead: None }
    }

    /// A child that is stopped there. `scene` is as the slot is found, for a child that shows the way.
    fn start(&mut self, table: &Table, scene: impl Fn() -> Result<Scene>) -> Result<Tracee<bool>> {
        let mut lead = match self.lead.take() {
            Some(lead) => lead,
            None => self.find(&scene()?.table, &scene()?.table)?,
        };
        let mut child = adder(table, self.letter)?;
        lead.lead(&mut child)?;
        self.lead = Some(lead);
        // The way there is not always equally long.
        while !is_half_way(table, self.letter.as_bytes()[0])? {
            ensure(child.step()?, || "it never was half-way".into())?;
        }
        Ok(child)
    }

    /// How far it is, in one table, and the way there, in another.
    fn find(&self, table: &Table, other: &Table) -> Result<Lead> {
        let mut child = adder(table, self.letter)?;
        let mut steps = 0;
        while !is_half_way(table, self.letter.as_bytes()[0])? {
            ensure(child.step()?, || "it never was half-way".into())?;
            steps += 1;
        }
        let mut end = Lead::to_the_end();
        end.lead(&mut adder(other, self.letter)?)?;
        Ok(end.to(steps))
    }
}

/// The first engine has left.
fn scene_without() -> Result<Scene> {
    let scene = scene()?;
    scene.table.remove(0)?;
    Ok(scene)
}

/// Three processes: while the first views the table, the second is stopped in the middle of writing the
/// name.
fn half_renamed_while_viewed(half_way: &mut HalfWay, lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = viewer(&scene)?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    let renamer = half_way.start(&scene.table, scene_without)?;
    half_renamed(scene, child, renamer)
}

/// Four processes: the same, and another has died there before.
fn half_renamed_again_while_viewed(
    [dead, half_way]: &mut [HalfWay; 2],
    lead: &mut Lead,
) -> Result<bool> {
    let scene = scene()?;
    let mut child = viewer(&scene)?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    drop(dead.start(&scene.table, scene_without)?);
    let dead = std::cell::RefCell::new(dead);
    let renamer = half_way.start(&scene.table, || {
        let scene = scene_without()?;
        drop(dead.borrow_mut().start(&scene.table, scene_without)?);
        Ok(scene)
    })?;
    half_renamed(scene, child, renamer)
}

fn half_renamed(
    scene: Scene,
    mut viewer: Tracee<Option<String>>,
    mut renamer: Tracee<bool>,
) -> Result<bool> {
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
    scene.table.add(&Engine::named(name("b")))?;
    let found = child.report()?;
    let fits = !found || lead.instructions() > 0;
    ensure(fits, || "the engine that left was found".into())?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}

/// Three processes: while the first looks for what the slot says when its name is half written, the second
/// is stopped there. No engine has that name.
fn half_renamed_while_found(half_way: &mut HalfWay, lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let torn = "b".repeat(HALF) + &"a".repeat(LENGTH - HALF);
    let mut child: Tracee<bool> = Tracee::fork(
        || scene.table.clone(),
        |table| table.find(&torn),
        |found| found.is_some(),
    )?;
    lead.lead(&mut child)?;
    scene.table.remove(0)?;
    let mut renamer = half_way.start(&scene.table, scene_without)?;
    ensure(!child.report()?, || {
        "an engine was found by parts of two names".into()
    })?;
    ensure(renamer.report()?, || "it was not added".into())?;
    drop((child, renamer));
    scene.ends_well()?;
    Ok(true)
}
