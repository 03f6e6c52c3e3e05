//! A table is brought to another configuration, or given to a deployment, by a process that is stopped or
//! killed half-way: what is in flight stays exact, one process has the place, the table is as it was asked
//! for when an apply has returned, and processes that open it are told of a difference by that.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, ensure, named};
use headcount::{Deployment, Engine, EngineState, Error, Options, RouteError, Table, View};
use headcount_tests::{Forked, Lead, Tracee};

/// The cap of the table that is asked for: one more than is in flight.
const CAP: u32 = 6;

/// What another process does while an apply is under way.
type Act = fn(&mut Scene) -> Result<()>;

pub(super) fn pairs() -> Vec<Pair> {
    const ACTS: [(&str, Act); 2] = [("Route", route_three), ("Reap", Scene::reap)];
    let acts = ACTS.into_iter().flat_map(|(name, act)| {
        [("Apply", After::GoesOn), ("ApplyKilled", After::IsKilled)].map(|(apply, after)| {
            Pair::new(format!("{apply}-{name}"), move |lead| {
                applied(act, after, lead)
            })
            .every(19)
        })
    });
    let others = [
        Pair::new("Apply-Apply", |lead| two_applies(After::GoesOn, lead)).every(19),
        Pair::new("ApplyKilled-Apply", |lead| {
            two_applies(After::IsKilled, lead)
        })
        .every(19),
        Pair::new("Apply-DeployAndApply", deployed_meanwhile).every(19),
        Pair::new("Apply-Add", added_meanwhile).every(19),
        Pair::new("Deploy-Apply", applied_meanwhile).every(3),
        Pair::new("Deploy-Deploy", two_deployments).every(3),
        Pair::new("DeployKilled-Deploy", deployment_that_died).every(3),
    ];
    acts.chain(others).collect()
}

/// What becomes of the process that was stopped in its apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    GoesOn,
    IsKilled,
}

/// The result of an apply, or of a deployment.
type Done = std::result::Result<(), String>;

fn done<T>(result: headcount::Result<T>) -> Done {
    result.map(drop).map_err(|error| format!("{error:?}"))
}

fn created() -> Options {
    let options = Table::options().engines(2).max_engines(5);
    options.max_frontends(4).threads(1)
}

/// Engine 0 has a cap, engine 1 goes, one comes, and the table has a cap of its own.
fn asked() -> Options {
    let options = Table::options().engine(Engine::named("0").max_in_flight(4));
    options.engine(Engine::named("new")).max_in_flight(CAP)
}

/// Another configuration.
fn asked_by_another() -> Options {
    let options = Table::options().engine(Engine::named("1").max_in_flight(9));
    options
        .engine(Engine::named("other"))
        .max_in_flight(CAP + 3)
}

/// The engines that take requests, with their caps, and the cap of the table.
type Shown = (Vec<(String, Option<u32>)>, Option<u32>);

fn shown(view: &View) -> Shown {
    let mut engines: Vec<_> = (view.engines.iter())
        .filter(|engine| engine.state == EngineState::Active)
        .map(|engine| (engine.name.clone(), engine.max_in_flight))
        .collect();
    engines.sort_unstable();
    (engines, view.max_in_flight)
}

/// The same of a table that was created so.
fn shown_of(options: Options) -> Result<Shown> {
    let table = options.max_engines(5).memfd()?;
    Ok(shown(&table.view()))
}

/// Two requests on engine 0, three on engine 1.
fn scene() -> Result<Scene> {
    let mut scene = Scene::new(&created())?;
    scene.pin(&[0, 0, 1, 1, 1])?;
    Ok(scene)
}

fn applier(table: &Table) -> Result<Tracee<Done>> {
    Ok(Tracee::fork(
        || (table.clone(), asked()),
        |(table, options)| table.apply(&options),
        done,
    )?)
}

fn in_flight(scene: &Scene) -> u32 {
    let view = scene.table.view();
    view.engines.iter().map(|engine| engine.in_flight).sum()
}

/// Places three requests, as far as there is room: as the table was before, there is.
fn route_three(scene: &mut Scene) -> Result<()> {
    for _ in 0..3 {
        match scene.own.route() {
            Ok(permit) => scene.permits.push(permit),
            Err(RouteError::Saturated { .. }) => {
                let in_flight = in_flight(scene);
                ensure(in_flight >= CAP, || {
                    format!("refused with {in_flight} in flight, under a cap of {CAP}")
                })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whatever is done meanwhile, the table is as asked when the apply has returned, or the next one if this
/// one was killed.
fn applied(act: Act, after: After, lead: &mut Lead) -> Result<bool> {
    let mut scene = scene()?;
    // Before a frontend dies, which the child would reap.
    let mut child = applier(&scene.table)?;
    scene.leave_dead(&[0])?;
    lead.lead(&mut child)?;
    let asked_for = shown_of(asked())?;
    let is_under_way = shown(&scene.table.view()) != asked_for;
    act(&mut scene)?;
    match after {
        After::GoesOn => child.report()??,
        After::IsKilled => {
            drop(child);
            let found = scene.table.verify()?;
            ensure(found.faults.is_empty(), || {
                format!("K1: {:?}", found.faults)
            })?;
            scene.table.apply(&asked())?;
        }
    }
    scene.reap()?;
    is_obeyed(&mut scene, &asked())?;
    scene.permits.clear();
    scene.ends_well()?;
    Ok(is_under_way)
}

/// Fails unless the table shows that configuration, requests are placed by it, and of the processes that
/// come later only those that ask for it are let in.
fn is_obeyed(scene: &mut Scene, asked: &Options) -> Result<()> {
    let view = scene.table.view();
    let (asked_for, found) = (shown_of(asked.clone())?, shown(&view));
    ensure(found == asked_for, || {
        format!("asked for {asked_for:?}, and is {found:?}")
    })?;
    asked.from_fd(&scene.table)?;
    ensure(
        matches!(created().from_fd(&scene.table), Err(Error::Differs { .. })),
        || "a process that asks for what the table was created with was let in".into(),
    )?;
    scene.counts_are_exact(&[])?;
    let cap = view.max_in_flight.ok_or("no cap")? as usize;
    let in_flight = scene.permits.len();
    ensure(in_flight < cap || scene.own.route().is_err(), || {
        format!("C4: {in_flight} in flight, and there was room under a cap of {cap}")
    })?;
    scene.permits.truncate(cap - 1);
    while scene.permits.len() < cap {
        let permit = scene.own.route()?;
        let engine = view.engine(permit.engine().index());
        ensure(
            engine.is_some_and(|engine| engine.state == EngineState::Active),
            || {
                format!(
                    "C8: placed on engine {}, which was removed",
                    permit.engine().index()
                )
            },
        )?;
        scene.permits.push(permit);
    }
    ensure(scene.own.route().is_err(), || {
        format!("C4: one more than {cap} in flight")
    })?;
    scene.counts_are_exact(&[])
}

/// Two processes apply: the one that comes while the other is at it waits for that, and what is there in
/// the end was asked for by the one that came last, all of it.
fn two_applies(after: After, lead: &mut Lead) -> Result<bool> {
    let mut scene = scene()?;
    let mut child = applier(&scene.table)?;
    lead.lead(&mut child)?;
    let is_done = shown(&scene.table.view()) == shown_of(asked())?;
    let mut other: Forked<Done> = Forked::start(|| done(scene.table.apply(&asked_by_another())))?;
    let waited = other.is_kept_waiting()?;
    if !waited {
        other.report()??;
    }
    match after {
        After::GoesOn => child.report()??,
        After::IsKilled => drop(child),
    }
    if waited {
        other.report()??;
    }
    let other_was_last = waited || is_done || after == After::IsKilled;
    let last = if other_was_last {
        asked_by_another()
    } else {
        asked()
    };
    is_obeyed(&mut scene, &last)?;
    scene.permits.clear();
    scene.ends_well()?;
    Ok(waited)
}

/// Another process becomes the deployment while a process applies, and applies itself. That waits for what
/// had begun before, and nothing begins after it: in the end the table is as the deployment asked.
fn deployed_meanwhile(lead: &mut Lead) -> Result<bool> {
    let mut scene = scene()?;
    let mut child = applier(&scene.table)?;
    lead.lead(&mut child)?;
    let is_done = shown(&scene.table.view()) == shown_of(asked())?;
    let mut other: Forked<Done> = Forked::start(|| {
        let deployment = scene.table.deploy();
        let applied = deployment.as_ref().map_err(|error| format!("{error:?}"));
        let applied = applied.and_then(|deployment| done(deployment.apply(&asked_by_another())));
        std::mem::forget(deployment);
        applied
    })?;
    let waited = other.is_kept_waiting()?;
    if !waited {
        other.report()??;
    }
    let told = child.report()?;
    if waited {
        other.report()??;
    }
    // One that waited may have waited for an apply that had not yet checked for a deployment.
    let fits = match &told {
        Ok(()) => waited || is_done,
        Err(told) => !is_done && told.starts_with("Deployed"),
    };
    ensure(fits, || {
        format!("waited: {waited}, done: {is_done}, and the apply was told {told:?}")
    })?;
    is_obeyed(&mut scene, &asked_by_another())?;
    drop((child, other));
    scene.permits.clear();
    scene.ends_well()?;
    Ok(waited)
}

/// An engine that is added while a process applies waits for that, and stays; one that was added before is
/// not among those that were asked for.
fn added_meanwhile(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = applier(&scene.table)?;
    lead.lead(&mut child)?;
    let is_done = named(&scene.table.view(), "new").is_some();
    let mut other: Forked<Done> = Forked::start(|| done(scene.table.add(Engine::named("added"))))?;
    let waited = other.is_kept_waiting()?;
    if waited {
        child.finish()?;
    }
    other.report()??;
    child.report()??;
    let view = scene.table.view();
    let is_there =
        |name| named(&view, name).is_some_and(|engine| engine.state == EngineState::Active);
    ensure(is_there("0") && is_there("new"), || {
        format!("what was applied is lost: {:?}", view.engines)
    })?;
    ensure(is_there("added") == (waited || is_done), || {
        format!(
            "waited: {waited}, done: {is_done}, and is {:?}",
            view.engines
        )
    })?;
    drop((child, other));
    let mut scene = scene;
    scene.permits.clear();
    scene.ends_well()?;
    Ok(waited)
}

fn deployer(table: &Table) -> Result<Tracee<Done>> {
    Ok(Tracee::fork(
        || table.clone(),
        |table| table.deploy(),
        |deployment| {
            let told = deployment.as_ref().map(drop).map_err(|e| format!("{e:?}"));
            std::mem::forget(deployment);
            told
        },
    )?)
}

/// The deployment, unless another process has the place.
fn deploy(table: &Table) -> Result<Option<Deployment>> {
    match table.deploy() {
        Ok(deployment) => Ok(Some(deployment)),
        Err(Error::Deployed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An apply beside a deployment that is not there yet comes before it, all of it; otherwise the apply is told
/// so and changes nothing.
fn applied_meanwhile(lead: &mut Lead) -> Result<bool> {
    let mut scene = scene()?;
    let mut child = deployer(&scene.table)?;
    lead.lead(&mut child)?;
    let before = shown(&scene.table.view());
    let has_place = match scene.table.apply(&asked()) {
        Ok(_) => false,
        Err(Error::Deployed { .. }) => true,
        Err(error) => return Err(format!("the apply was told {error:?}").into()),
    };
    ensure(has_place || !lead.has_ended(), || {
        "a table that serves a deployment was changed".into()
    })?;
    if has_place {
        let found = shown(&scene.table.view());
        ensure(found == before, || {
            format!("the apply was refused, and changed {before:?} to {found:?}")
        })?;
    }
    child.report()??;
    drop(child);
    if !has_place {
        is_obeyed(&mut scene, &asked())?;
    }
    scene.permits.clear();
    scene.ends_well()?;
    Ok(has_place)
}

/// Of two one is the deployment, and the other is told so.
fn two_deployments(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = deployer(&scene.table)?;
    lead.lead(&mut child)?;
    let second = deploy(&scene.table)?;
    let first = child.report()?;
    ensure(first.is_ok() != second.is_some(), || {
        format!("of two deployments the first came to {first:?}, the second has it: {second:?}")
    })?;
    ensure(scene.table.view().deployment.is_some(), || {
        "there is a deployment, and none is shown".into()
    })?;
    Ok(second.is_some())
}

/// K2: the place of one that dies is free at once, wherever it was.
fn deployment_that_died(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = deployer(&scene.table)?;
    lead.lead(&mut child)?;
    let has_place = deploy(&scene.table)?.is_none();
    drop(child);
    let second = deploy(&scene.table)?;
    ensure(second.is_some(), || "K2: the dead one has the place".into())?;
    let found = scene.table.view().deployment;
    ensure(found == Some(std::process::id()), || {
        format!("the deployment that is shown is {found:?}")
    })?;
    drop(second);
    Ok(has_place)
}
