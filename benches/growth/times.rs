//! The time of a route and its finish, and of a bare pair that alternates with it.

use headcount::{EngineStats, Publisher, Table};
use headcount_benches::background::publishing;
use headcount_yardstick::{
    Alternation, Contenders, MeasureError, Processes, SLICE, bare_pair, calm, pressed,
    route_and_finish, shared_line,
};
use serde_json::{Value, json};
use std::time::Duration;

const ROUNDS: usize = 31;
/// When processes share cores, a slice must be long enough for each of them to run in it.
const LONG_SLICE: Duration = Duration::from_millis(40);

/// By the number of engines; without pressure, and with it, when all statistics are read.
pub(crate) fn by_engines() -> Result<Value, MeasureError> {
    let mut tables = Vec::new();
    for power in 0..=12 {
        let engines = 1 << power;
        let table = || Table::options().engines(engines).memfd();
        tables.push((engines, table()?, calm()));
        tables.push((engines, table()?, pressed()));
    }
    let line = shared_line()?;
    let mut processes = Processes::start(1, |worker| {
        let mut workloads = vec![bare_pair(&line)];
        for (_, table, _) in &tables {
            workloads.push(route_and_finish(table.join()?));
        }
        Ok(Contenders::new(worker, workloads))
    })?;
    let mut publishers: Vec<(Publisher, Vec<EngineStats>)> = Vec::new();
    for (engines, table, stats) in &tables {
        publishers.push((table.publisher()?, vec![*stats; *engines]));
    }
    let times = Alternation::new(tables.len() + 1, ROUNDS, SLICE)
        .before_each_round(move || {
            for (publisher, stats) in &mut publishers {
                publisher.publish(stats)?;
            }
            Ok(())
        })
        .run(&mut processes)?;
    let rows = tables.chunks_exact(2).enumerate().map(|(row, both)| {
        json!({
            "engines": both[0].0,
            "calm": times.nanoseconds(2 * row + 1),
            "pressed": times.nanoseconds(2 * row + 2),
        })
    });
    Ok(json!({ "bare_pair": times.nanoseconds(0), "rows": rows.collect::<Value>() }))
}

/// By the number of processes. A process sees `nanoseconds` for each request.
pub(crate) fn by_processes() -> Result<Value, MeasureError> {
    let mut rows = Vec::new();
    for count in [1, 2, 3, 4, 6, 8] {
        let tables = [8, 64].map(|engines| (engines, Table::options().engines(engines).memfd()));
        let [(_, small), (_, large)] = tables;
        let tables = [small?, large?];
        let line = shared_line()?;
        let mut processes = Processes::start(count, |worker| {
            let mut workloads = vec![bare_pair(&line)];
            for table in &tables {
                workloads.push(route_and_finish(table.join()?));
            }
            Ok(Contenders::new(worker, workloads))
        })?;
        let (rounds, slice) = if processes.are_pinned() {
            (ROUNDS, SLICE)
        } else {
            (15, LONG_SLICE)
        };
        let times = Alternation::new(3, rounds, slice).run(&mut processes)?;
        rows.push(json!({
            "processes": count,
            "a_core_each": processes.are_pinned(),
            "undisturbed_rounds": times.undisturbed,
            "bare_pair": times.nanoseconds(0),
            "engines_8": times.nanoseconds(1),
            "engines_64": times.nanoseconds(2),
        }));
    }
    Ok(rows.into())
}

/// By the rate of publications.
pub(crate) fn by_publications() -> Result<Value, MeasureError> {
    const ENGINES: usize = 8;
    let mut rows = Vec::new();
    for rate in [10, 100, 1_000, 10_000, 100_000, u64::MAX] {
        let new = || Table::options().engines(ENGINES).memfd();
        let tables = [(new()?, calm()), (new()?, pressed())];
        let line = shared_line()?;
        let mut processes = Processes::start(1, |worker| {
            let mut workloads = vec![bare_pair(&line)];
            for (table, _) in &tables {
                workloads.push(route_and_finish(table.join()?));
            }
            Ok(Contenders::new(worker, workloads))
        })?;
        // One after the other, so that no more run than there are cores.
        let mut nanoseconds = Vec::new();
        let mut pair = 0.0;
        for (contender, (table, stats)) in tables.iter().enumerate() {
            let _publisher = publishing(table, vec![*stats; ENGINES], rate)?;
            let times = Alternation::new(3, ROUNDS, SLICE).run(&mut processes)?;
            nanoseconds.push(times.nanoseconds(contender + 1));
            pair = times.nanoseconds(0);
        }
        rows.push(json!({
            "rate": (rate < u64::MAX).then_some(rate),
            "bare_pair": pair,
            "calm": nanoseconds[0],
            "pressed": nanoseconds[1],
        }));
    }
    Ok(rows.into())
}

/// By what the table has room for, with eight engines in it.
pub(crate) fn by_table() -> Result<Value, MeasureError> {
    let rooms = [(8, 1), (64, 64), (1024, 256), (4096, 1023)];
    let mut tables = Vec::new();
    for (max_engines, max_frontends) in rooms {
        let options = Table::options().engines(8).max_engines(max_engines);
        tables.push(options.max_frontends(max_frontends).memfd()?);
    }
    let line = shared_line()?;
    let mut processes = Processes::start(1, |worker| {
        let mut workloads = vec![bare_pair(&line)];
        for table in &tables {
            workloads.push(route_and_finish(table.join()?));
        }
        Ok(Contenders::new(worker, workloads))
    })?;
    let times = Alternation::new(rooms.len() + 1, ROUNDS, SLICE).run(&mut processes)?;
    let rows = rooms.iter().enumerate().map(|(row, (engines, frontends))| {
        json!({
            "max_engines": engines,
            "max_frontends": frontends,
            "nanoseconds": times.nanoseconds(row + 1),
        })
    });
    Ok(json!({ "bare_pair": times.nanoseconds(0), "rows": rows.collect::<Value>() }))
}
