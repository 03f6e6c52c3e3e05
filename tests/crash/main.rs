//! A kill at every instruction, in the shipped code.
//!
//! A child process performs one operation under ptrace, is led n instructions into it and killed,
//! for every n from the first instruction to the last. Each time the survivor goes on, a reap makes
//! the counts exact, and a new frontend takes the slot of the dead one. Two passes: in the second the
//! survivor works on the same engines between the child's last instruction and its death, so that it
//! overwrites what the child has just written. The reaper is one of those killed; what it reaps died
//! in the middle of an operation itself. While a process dies that finishes or waits, another one waits, and
//! is served.
//!
//! `crash [EVERY [OPERATION]]` tries every EVERYth instruction, by default all, of the operations whose
//! name contains OPERATION, by default all.

mod configuration;
mod operation;
mod queue;

use headcount::{EngineState, Frontend, Permit, Request, Table};
use headcount_tests::{Lead, Strayed, TestTable, Tracee};
use operation::{ALL, CAP, CAP_IN_TOKENS, CAP_OF_FIRST, Operation, STATS};
use std::process::ExitCode;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let every = arguments
        .next()
        .map_or(Ok(1), |every| every.parse::<usize>());
    let Ok(every @ 1..) = every else {
        eprintln!("usage: crash [EVERY [OPERATION]]");
        return ExitCode::from(2);
    };
    let name = arguments.next().unwrap_or_default();
    println!(
        "{:<18} {:>11} {:>7} {:>8} {:>8}",
        "operation", "instructions", "killed", "drifted", "seconds"
    );
    let (mut killed, mut drifted) = (0, 0);
    for operation in ALL
        .into_iter()
        .filter(|operation| operation.name().contains(&name))
    {
        for helps in [false, true] {
            let tried = try_all(operation, helps, every);
            killed += tried.0;
            drifted += tried.1;
        }
    }
    println!("{killed} points of death, {drifted} drifted");
    match drifted {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// How many points of death were tried, and how many drifted.
fn try_all(operation: Operation, helps: bool, every: usize) -> (usize, usize) {
    let start = Instant::now();
    let (mut killed, mut drifted) = (0, 0);
    let mut try_at = |lead: &mut Lead| {
        let mut outcome = try_one(operation, helps, lead);
        if outcome.as_ref().is_err_and(|error| error.is::<Strayed>()) {
            *lead = lead.by_steps();
            outcome = try_one(operation, helps, lead);
        }
        killed += 1;
        if let Err(error) = outcome {
            println!("{} after {lead}: {error}", operation.name());
            drifted += 1;
        }
    };
    // First after the operation, which shows how long it is and what way it goes.
    let mut end = Lead::to_the_end();
    try_at(&mut end);
    let instructions = end.instructions();
    for instructions in (0..instructions).step_by(every * operation.every()) {
        try_at(&mut end.to(instructions));
    }
    let name = format!(
        "{}{}",
        operation.name(),
        if helps { ", helped" } else { "" }
    );
    let seconds = start.elapsed().as_secs_f32();
    println!("{name:<25} {instructions:>5} {killed:>7} {drifted:>8} {seconds:>8.1}");
    (killed, drifted)
}

/// Kills a child that is led so far into its operation.
fn try_one(operation: Operation, helps: bool, lead: &mut Lead) -> Result<()> {
    if operation.is_of_the_queue() {
        return queue::try_one(operation, helps, lead);
    }
    let table = TestTable::new(&operation.created());
    let survivor = table.join()?;
    let mut permits = survivor.route_many_with(3, &Request::new().tokens(10))?;
    table.publisher()?.publish_with(&[], [0, 0])?;
    if operation == Operation::Reap {
        die_in_the_middle(&table)?;
    }
    let mut child = Tracee::fork(
        || operation.prepare(&table),
        |prepared| operation.perform(prepared),
        |()| (),
    )?;
    lead.lead(&mut child)?;
    if helps {
        work(&survivor, &mut permits)?;
    }
    drop(child);
    // The survivor goes on before any process reaps.
    work(&survivor, &mut permits)?;
    table.reap()?;
    counts_are_exact(&table, &permits)?;
    match operation {
        Operation::Apply => {
            // Not yet, or it is heeded.
            if table.view().max_in_flight == Some(CAP) {
                is_free(&table, CAP, permits.len(), &Request::new())?;
            }
            configuration::is_completed(&table, table.path(), lead.has_ended())?;
        }
        Operation::Deploy => place_is_free(&table)?,
        _ => {}
    }
    check(&table, operation, &permits)?;
    // A new frontend can take the slot of the dead one, and all is as before when it has left.
    let new = table.join()?;
    let mut others = new.route_many_with(4, &Request::new().tokens(1))?;
    work(&new, &mut others)?;
    drop((new, others));
    check(&table, operation, &permits)?;
    drop(permits);
    check(&table, operation, &[])
}

/// Leaves a dead frontend that died between its engine's word and its own ledger.
fn die_in_the_middle(table: &Table) -> Result<()> {
    let route = Operation::RouteWithTokens;
    let mut child = Tracee::fork(
        || route.prepare(table),
        |prepared| route.perform(prepared),
        |()| (),
    )?;
    let count = || {
        table
            .view()
            .engines
            .iter()
            .map(|e| e.in_flight)
            .sum::<u32>()
    };
    let before = count();
    while count() == before {
        if !child.step()? {
            return Err("the operation ended and nothing was counted".into());
        }
    }
    Ok(())
}

/// Routes and finishes on every engine that takes requests, with tokens and without.
fn work(frontend: &Frontend, permits: &mut Vec<Permit>) -> Result<()> {
    let engines = frontend.table().view().engines;
    for engine in engines.iter().filter(|e| e.state == EngineState::Active) {
        for tokens in [0, 20] {
            let request = Request::new().pin(engine.id.index()).tokens(tokens);
            permits.push(frontend.route_with(&request)?);
        }
        let of_engine = permits
            .iter()
            .position(|permit| permit.engine().index() == engine.id.index());
        drop(of_engine.map(|index| permits.swap_remove(index)));
    }
    Ok(())
}

/// Fails unless the table can be changed without a deployment that has died, and its place can be taken.
fn place_is_free(table: &Table) -> Result<()> {
    table.apply(&Operation::Deploy.created())?;
    drop(table.deploy()?);
    let found = table.verify()?;
    match (found.faults.as_slice(), table.view().deployment) {
        ([], None) => Ok(()),
        (faults, deployment) => Err(format!("{faults:?}, {deployment:?}").into()),
    }
}

/// Compares the table with the permits that are alive, and probes its caps.
fn check(table: &Table, operation: Operation, permits: &[Permit]) -> Result<()> {
    counts_are_exact(table, permits)?;
    caps_hold(table, operation, permits)?;
    if operation == Operation::Publish {
        publication_is_whole(table)?;
    }
    Ok(())
}

fn counts_are_exact(table: &Table, permits: &[Permit]) -> Result<()> {
    let view = table.view();
    for engine in &view.engines {
        let alive = permits
            .iter()
            .filter(|permit| permit.engine().index() == engine.id.index());
        let (requests, tokens) = alive.fold((0, 0), |sum, p| (sum.0 + 1, sum.1 + p.tokens()));
        if (engine.in_flight, engine.tokens) != (requests, tokens) {
            return Err(
                format!("{engine:?}, but {requests} permits of {tokens} tokens live").into(),
            );
        }
        let known = ["0", "1", "third"].contains(&engine.name.as_str());
        if !known {
            return Err(format!("an engine was seen half-made: {engine:?}").into());
        }
    }
    let held: u64 = view
        .frontends
        .iter()
        .map(|frontend| frontend.in_flight)
        .sum();
    if held != permits.len() as u64 {
        return Err(format!("the ledgers say {held}, but {} permits live", permits.len()).into());
    }
    Ok(())
}

fn caps_hold(table: &Table, operation: Operation, permits: &[Permit]) -> Result<()> {
    is_free(table, CAP, permits.len(), &Request::new())?;
    if operation == Operation::AddTokens {
        all_tokens_are_free(table, permits)?;
    }
    if operation == Operation::Apply {
        let on_first = permits.iter().filter(|permit| permit.engine().index() == 0);
        is_free(
            table,
            CAP_OF_FIRST,
            on_first.count(),
            &Request::new().pin(0),
        )?;
    }
    Ok(())
}

/// Fails unless a cap leaves room for exactly as many requests as it has above those in flight.
fn is_free(table: &Table, cap: u32, in_flight: usize, request: &Request<'_>) -> Result<()> {
    let probe = table.join()?;
    let free = cap as usize - in_flight;
    if probe.route_many_with(free + 1, request).is_err()
        && probe.route_many_with(free, request).is_ok()
    {
        Ok(())
    } else {
        Err(format!("{free} should be free under a cap of {cap}").into())
    }
}

/// Fails unless the table has room for exactly as many tokens as its cap is above those in flight.
fn all_tokens_are_free(table: &Table, permits: &[Permit]) -> Result<()> {
    let in_flight: u32 = permits.iter().map(Permit::tokens).sum();
    let free = CAP_IN_TOKENS - in_flight;
    let probe = table.join()?;
    let mut permit = probe.route()?;
    if permit.set_tokens(free + 1).is_err() && permit.set_tokens(free).is_ok() {
        Ok(())
    } else {
        Err(format!("{free} tokens should be free").into())
    }
}

fn publication_is_whole(table: &Table) -> Result<()> {
    let view = table.view();
    let words = view.snapshot.map(|snapshot| snapshot.words);
    let stats: Vec<_> = view.engines.iter().map(|engine| engine.stats).collect();
    let old = words == Some([0, 0]) && stats == [None; 2];
    let new = words == Some([STATS.waiting.into(); 2]) && stats == [Some(STATS); 2];
    if !old && !new {
        return Err(format!("a publication was seen half-made: {words:?} {stats:?}").into());
    }
    drop(table.publisher()?);
    Ok(())
}
