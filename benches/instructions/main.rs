//! Runs a number of operations and nothing else, for callgrind to count their instructions.
//!
//! ```text
//! instructions ENGINES COUNT route    # routes, and ends with the requests in flight
//! instructions ENGINES COUNT finish   # the same, and then finishes them, while their frontend is there
//! instructions ENGINES COUNT pressed  # routes under KV pressure, with weights and caps, and finishes as many
//! ```
//!
//! The difference of two runs leaves out what both do: with two counts, the start of the program;
//! with `finish` and `route`, the routing.

use headcount::{Frontend, Permit, Policy, RouteError, Table};
use headcount_yardstick::{MeasureError, fresh_table, pressed_in_flight, pressed_table};
use std::collections::VecDeque;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [engines, count, what] => match (engines.parse(), count.parse()) {
            (Ok(engines), Ok(count)) => run(engines, count, what),
            _ => Err(usage()),
        },
        _ => Err(usage()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> MeasureError {
    MeasureError("usage: instructions ENGINES COUNT route|finish|pressed".to_owned())
}

fn run(engines: usize, count: usize, what: &str) -> Result<(), MeasureError> {
    match what {
        "route" | "finish" => calm(engines, count, what == "finish"),
        "pressed" => pressed(engines, count),
        _ => Err(usage()),
    }
}

fn calm(engines: usize, count: usize, finishes: bool) -> Result<(), MeasureError> {
    let frontend = join(&fresh_table(engines)?)?;
    let mut permits: Vec<Permit> = Vec::with_capacity(count);
    for _ in 0..count {
        permits.push(route(&frontend)?);
    }
    if finishes {
        permits.into_iter().for_each(finish);
    } else {
        std::mem::forget(permits);
    }
    // Not before: a permit whose frontend is gone takes another way, on which it checks whether it is the last.
    drop(frontend);
    Ok(())
}

fn pressed(engines: usize, count: usize) -> Result<(), MeasureError> {
    let frontend = join(&pressed_table(engines)?)?;
    let in_flight = pressed_in_flight(engines);
    let mut permits = VecDeque::with_capacity(in_flight + 1);
    permits.extend(frontend.route_many(in_flight)?);
    for _ in 0..count {
        permits.push_back(route(&frontend)?);
        permits.pop_front().into_iter().for_each(finish);
    }
    std::mem::forget(permits);
    drop(frontend);
    Ok(())
}

/// Routes. Not inlined, since a loop would load much of it once for all requests, and a server has no such loop.
#[inline(never)]
fn route(frontend: &Frontend) -> Result<Permit, RouteError> {
    black_box(frontend.route())
}

/// Finishes, in the same way.
#[inline(never)]
fn finish(permit: Permit) {
    drop(permit);
}

/// Joins, by the default policy, but so that the snapshot stays fresh however slow callgrind is.
fn join(table: &Table) -> Result<Frontend, MeasureError> {
    let policy = Policy::in_flight().stale_after(Duration::from_secs(3_600));
    Ok(table.join()?.with_policy(policy))
}
