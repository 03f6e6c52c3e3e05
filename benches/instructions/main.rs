//! Runs a number of operations and nothing else, for callgrind to count their instructions.
//!
//! ```text
//! instructions ENGINES COUNT route    # routes, and ends with the requests in flight
//! instructions ENGINES COUNT finish   # the same, and then finishes them, while their frontend is there
//! ```
//!
//! The difference of two runs leaves out what both do: with two counts, the start of the program;
//! with `finish` and `route`, the routing.

use headcount::{EngineStats, Frontend, Permit, Table};
use std::hint::black_box;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [engines, count, what] => match (engines.parse(), count.parse(), what.as_str()) {
            (Ok(engines), Ok(count), "route") => run(engines, count, false),
            (Ok(engines), Ok(count), "finish") => run(engines, count, true),
            _ => Err("usage: instructions ENGINES COUNT route|finish".to_owned()),
        },
        _ => Err("usage: instructions ENGINES COUNT route|finish".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(engines: usize, count: usize, finish: bool) -> Result<(), String> {
    let (frontend, permits) = route(engines, count).map_err(|error| error.to_string())?;
    if finish {
        permits.into_iter().for_each(drop);
    } else {
        std::mem::forget(permits);
    }
    // Not before: a permit whose frontend is gone takes another way, on which it checks whether it is the last.
    drop(frontend);
    Ok(())
}

/// The frontend, which is to outlive its permits, and these.
fn route(engines: usize, count: usize) -> headcount::Result<(Frontend, Vec<Permit>)> {
    let table = Table::options().engines(engines).memfd()?;
    let calm = EngineStats::new().running(20).kv_usage(0.4);
    table.publisher()?.publish(&vec![calm; engines])?;
    let frontend = table.join()?;
    let mut permits = Vec::with_capacity(count);
    for _ in 0..count {
        permits.push(black_box(frontend.route()?));
    }
    Ok((frontend, permits))
}
