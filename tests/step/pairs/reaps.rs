//! A dead frontend that held all of the table's cap is reaped while others route, join, open and reap:
//! C4, K1 and K4.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, TOKENS, ensure};
use headcount::{Engine, Options, Request, RouteError, Table};
use headcount_tests::{Forked, Lead, Tracee};

/// What the dead frontend holds: all that the table may.
const HELD: [usize; 4] = [0, 0, 1, 1];

pub(super) fn pairs() -> Vec<Pair> {
    vec![
        Pair::new("Reap-Route", |lead| reap(lead, route_until_refused)),
        Pair::new("Reap-JoinAndRoute", |lead| {
            reap(lead, |scene| {
                scene.own = scene.table.join()?;
                route_until_refused(scene)
            })
        }),
        Pair::new("Reap-Remove", |lead| {
            reap(lead, |scene| {
                scene.table.remove(0)?;
                scene.table.add(Engine::named("new"))?;
                route_until_refused(scene)
            })
        }),
        Pair::new("Reap-Reap", two_reaps),
        Pair::new("Reap-Open", opened_while_reaped).every(3),
        Pair::new("Open-Reap", |lead| open(lead, |scene| scene.reap())).every(7),
        Pair::new("Open-Open", |lead| {
            open(lead, |scene| {
                Table::options().from_fd(&scene.table)?;
                Ok(())
            })
        })
        .every(7),
        Pair::new("Open-JoinAndRoute", |lead| {
            open(lead, |scene| {
                scene.own = scene.table.join()?;
                route_until_refused(scene)
            })
        })
        .every(7),
    ]
}

fn options() -> Options {
    let cap = HELD.len() as u32;
    let options = Table::options().engines(2).max_engines(3);
    let options = options.max_frontends(4).threads(0);
    options.max_in_flight(cap).max_tokens(cap * TOKENS)
}

fn scene() -> Result<Scene> {
    let mut scene = Scene::new(&options())?;
    scene.leave_dead(&HELD)?;
    Ok(scene)
}

fn in_flight(table: &Table) -> u32 {
    let view = table.view();
    view.engines.iter().map(|engine| engine.in_flight).sum()
}

/// Takes every place that there is. Never are there more than the cap allows.
fn route_until_refused(scene: &mut Scene) -> Result<()> {
    loop {
        match scene.own.route_with(&Request::new().tokens(TOKENS)) {
            Ok(permit) => scene.permits.push(permit),
            Err(RouteError::Saturated { .. }) => return within_the_cap(scene),
            Err(error) => return Err(error.into()),
        }
        within_the_cap(scene)?;
    }
}

fn within_the_cap(scene: &Scene) -> Result<()> {
    let in_flight = in_flight(&scene.table);
    ensure(in_flight as usize <= HELD.len(), || {
        format!("C4: {in_flight} in flight")
    })
}

/// What a reap returned: frontends, requests, tokens.
type Returned = (usize, u64, u64);

fn reaper(table: &Table) -> Result<Tracee<Returned>> {
    Ok(Tracee::fork(
        || table.clone(),
        |table| table.reap(),
        |reaped| {
            let reaped = reaped.expect("reaps");
            (reaped.frontends, reaped.requests, reaped.tokens)
        },
    )?)
}

fn reap(lead: &mut Lead, act: impl Fn(&mut Scene) -> Result<()>) -> Result<bool> {
    let mut scene = scene()?;
    let mut child = reaper(&scene.table)?;
    lead.lead(&mut child)?;
    let is_counted = in_flight(&scene.table) > 0;
    act(&mut scene)?;
    child.report()?;
    within_the_cap(&scene)?;
    scene.counts_are_exact(&[])?;
    drop(child);
    scene.permits.clear();
    scene.ends_well()?;
    Ok(is_counted)
}

/// K1: what a dead frontend held is returned once, by whichever reaper.
fn two_reaps(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = reaper(&scene.table)?;
    lead.lead(&mut child)?;
    let is_counted = in_flight(&scene.table) > 0;
    let second = scene.table.reap()?;
    let (frontends, requests, tokens) = child.report()?;
    let all = (
        frontends + second.frontends,
        requests + second.requests,
        tokens + second.tokens,
    );
    let held = HELD.len() as u64;
    ensure(all == (1, held, held * u64::from(TOKENS)), || {
        format!("K1: two reaps returned {all:?} together")
    })?;
    scene.counts_are_exact(&[])?;
    drop(child);
    scene.ends_well()?;
    Ok(is_counted)
}

/// What a process sees that has just opened the table: requests in flight, and frontends that died.
type Seen = (u32, usize);

fn view(table: &headcount::Result<Table>) -> Seen {
    let table = table.as_ref().expect("opens");
    let view = table.view();
    let dead = view.frontends.iter().filter(|frontend| !frontend.alive);
    (in_flight(table), dead.count())
}

/// K4: a process that opens the table finds no dead frontend, even while another process reaps: it waits for that
/// process, or reaps itself.
fn opened_while_reaped(lead: &mut Lead) -> Result<bool> {
    let scene = scene()?;
    let mut child = reaper(&scene.table)?;
    lead.lead(&mut child)?;
    let is_counted = in_flight(&scene.table) > 0;
    let mut opener: Forked<Seen> = Forked::start(|| view(&Table::options().from_fd(&scene.table)))?;
    if opener.is_kept_waiting()? {
        child.finish()?;
    }
    let seen = opener.report()?;
    ensure(seen == (0, 0), || {
        format!("K4: opened with {} in flight and {} dead", seen.0, seen.1)
    })?;
    child.report()?;
    scene.counts_are_exact(&[])?;
    drop((child, opener));
    scene.ends_well()?;
    Ok(is_counted)
}

/// K4: a process that opens the table finds no dead frontend, whatever others do meanwhile.
fn open(lead: &mut Lead, act: impl Fn(&mut Scene) -> Result<()>) -> Result<bool> {
    let mut scene = scene()?;
    let mut child: Tracee<Seen> = Tracee::fork(
        || scene.table.clone(),
        |table| Table::options().from_fd(&table),
        |table| {
            let seen = view(&table);
            std::mem::forget(table);
            seen
        },
    )?;
    lead.lead(&mut child)?;
    let is_counted = in_flight(&scene.table) > 0;
    act(&mut scene)?;
    within_the_cap(&scene)?;
    let (in_flight, dead) = child.report()?;
    ensure(
        (in_flight as usize, dead) == (scene.permits.len(), 0),
        || format!("K4: opened with {in_flight} in flight and {dead} dead"),
    )?;
    scene.counts_are_exact(&[])?;
    drop(child);
    scene.permits.clear();
    scene.ends_well()?;
    Ok(is_counted)
}
