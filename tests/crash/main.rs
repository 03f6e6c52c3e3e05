//! A kill at every instruction, in the shipped code.
//!
//! A child process performs one operation under ptrace, is led n instructions into it and killed,
//! for every n from the first instruction to the last. Each time the survivor goes on, a reap makes
//! the counts exact, and a new frontend takes the dead one's place. Two passes: in the second the
//! survivor works on the same engines between the child's last instruction and its death, so that it
//! overwrites what the child has just written. The reaper is one of those killed; what it reaps died
//! in the middle of an operation itself.
//!
//! `crash [EVERY [OPERATION]]` tries every EVERYth instruction, by default all, of the operations whose
//! name contains OPERATION, by default all.

mod operation;

use headcount::{EngineState, Frontend, Permit, Request, Table};
use headcount_tests::Tracee;
use operation::{ALL, Operation, STATS};
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
            match try_all(operation, helps, every) {
                Ok(tried) => {
                    killed += tried.0;
                    drifted += tried.1;
                }
                Err(error) => {
                    eprintln!("{}: {error}", operation.name());
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    println!("{killed} points of death, {drifted} drifted");
    match drifted {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// How many points of death were tried, and how many drifted.
fn try_all(operation: Operation, helps: bool, every: usize) -> Result<(usize, usize)> {
    let start = Instant::now();
    let (mut killed, mut drifted) = (0, 0);
    let mut instructions = 0;
    loop {
        let ended = match try_one(operation, helps, instructions) {
            Ok(ended) => ended,
            Err(error) => {
                println!(
                    "{} after {instructions} instructions: {error}",
                    operation.name()
                );
                drifted += 1;
                false
            }
        };
        killed += 1;
        if ended {
            break;
        }
        instructions += every;
    }
    let name = format!(
        "{}{}",
        operation.name(),
        if helps { ", helped" } else { "" }
    );
    let seconds = start.elapsed().as_secs_f32();
    println!("{name:<25} {instructions:>5} {killed:>7} {drifted:>8} {seconds:>8.1}");
    Ok((killed, drifted))
}

/// Kills a child so many instructions into its operation. Says whether it had ended before.
fn try_one(operation: Operation, helps: bool, instructions: usize) -> Result<bool> {
    let options = Table::options()
        .engines(2)
        .max_engines(3)
        .max_frontends(3)
        .lanes(2);
    let table = options.max_in_flight(100).memfd()?;
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
    let mut ended = false;
    for _ in 0..instructions {
        if !child.step()? {
            ended = true;
            break;
        }
    }
    if helps {
        work(&survivor, &mut permits)?;
    }
    drop(child);
    // The survivor goes on before anybody reaps.
    work(&survivor, &mut permits)?;
    table.reap()?;
    check(&table, operation, &permits)?;
    // A new frontend can take the dead one's place, and all is as it was when it has gone.
    let new = table.join()?;
    let mut others = new.route_many_with(4, &Request::new().tokens(1))?;
    work(&new, &mut others)?;
    drop((new, others));
    check(&table, operation, &permits)?;
    drop(permits);
    check(&table, operation, &[])?;
    Ok(ended)
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
            .snapshot()
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
    let engines = frontend.table().snapshot().engines;
    for engine in engines.iter().filter(|e| e.state == EngineState::Active) {
        for tokens in [0, 20] {
            let request = Request::new().pin(engine.index).tokens(tokens);
            permits.push(frontend.route_with(&request)?);
        }
        let of_engine = permits
            .iter()
            .position(|permit| permit.engine() == engine.index);
        drop(of_engine.map(|index| permits.swap_remove(index)));
    }
    Ok(())
}

/// Compares the table with the permits that are alive.
fn check(table: &Table, operation: Operation, permits: &[Permit]) -> Result<()> {
    let view = table.snapshot();
    for engine in &view.engines {
        let alive = permits
            .iter()
            .filter(|permit| permit.engine() == engine.index);
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
    // The table's own count has no face of its own: what is free of 100 is.
    let free = 100 - permits.len();
    let probe = table.join()?;
    if probe.route_many(free + 1).is_ok() || probe.route_many(free).is_err() {
        return Err(format!("{free} should be free under the table's cap").into());
    }
    drop(probe);
    if operation == Operation::Publish {
        let words = view.snapshot.map(|snapshot| snapshot.words);
        let stats: Vec<_> = view.engines.iter().map(|engine| engine.stats).collect();
        let old = words == Some([0, 0]) && stats == [None; 2];
        let new = words == Some([STATS.waiting.into(); 2]) && stats == [Some(STATS); 2];
        if !old && !new {
            return Err(format!("a publication was seen half-made: {words:?} {stats:?}").into());
        }
        drop(table.publisher()?);
    }
    Ok(())
}
