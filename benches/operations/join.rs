//! The operations that a process does once: it joins, leaves, or is reaped.

use criterion::{BenchmarkId, Criterion};
use headcount::Table;
use headcount_yardstick::{MeasureError, Processes};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// All of it.
pub(crate) fn all(criterion: &mut Criterion) {
    join(criterion);
    reap(criterion);
}

/// Joining and leaving again, by how many others have joined.
fn join(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("join and leave");
    for others in [0, 7, 63] {
        let table = Table::options().engines(8).memfd().unwrap();
        let joined: Vec<_> = (0..others).map(|_| table.join().unwrap()).collect();
        group.bench_function(BenchmarkId::new("others", others), |bencher| {
            bencher.iter(|| drop(black_box(table.join().unwrap())));
        });
        drop(joined);
    }
    group.finish();
}

/// Reaping one process that was killed, by what it held.
fn reap(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reap of a killed process");
    for (engines, requests) in [(8, 0), (8, 1024), (4096, 4096)] {
        let table = Table::options().engines(engines).memfd().unwrap();
        let name = format!("{engines} engines, {requests} requests");
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| one_reap(&table, requests)).sum());
        });
    }
    group.finish();
}

/// How long it takes to return what a process held that has just been killed.
fn one_reap(table: &Table, requests: usize) -> Duration {
    let dead = Processes::start(1, |_| {
        let frontend = table.join()?;
        let permits = frontend.route_many(requests)?;
        Ok(move |_: &[u64]| -> Result<Vec<u64>, MeasureError> { Ok(vec![permits.len() as u64]) })
    })
    .unwrap();
    drop(dead);
    let start = Instant::now();
    let reaped = table.reap().unwrap();
    let elapsed = start.elapsed();
    assert_eq!(reaped.requests, requests as u64);
    elapsed
}
