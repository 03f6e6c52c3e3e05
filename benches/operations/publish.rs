//! Publishing, and reading what was published.

use criterion::{BenchmarkId, Criterion};
use headcount::Table;
use headcount_benches::background::publishing;
use headcount_yardstick::{calm, fresh_table, read_statistics};
use std::hint::black_box;

/// All of it.
pub(crate) fn all(criterion: &mut Criterion) {
    publish(criterion);
    read(criterion);
    read_while_published(criterion);
    view(criterion);
}

const ENGINES: [usize; 6] = [2, 8, 64, 256, 1024, 4096];

fn publish(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("publish");
    for engines in ENGINES {
        let table = Table::options().engines(engines).memfd().unwrap();
        let mut publisher = table.publisher().unwrap();
        let stats = vec![calm(); engines];
        group.bench_function(BenchmarkId::new("engines", engines), |bencher| {
            bencher.iter(|| publisher.publish(black_box(&stats)).unwrap());
        });
    }
    group.finish();
}

/// One consistent read of all statistics, while no process publishes.
fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot read");
    for engines in ENGINES {
        let table = fresh_table(engines).unwrap();
        let mut read = read_statistics(&table, engines);
        group.bench_function(BenchmarkId::new("engines", engines), |bencher| {
            bencher.iter(|| read(1).unwrap());
        });
    }
    group.finish();
}

fn read_while_published(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot read, 8 engines, publisher");
    for (name, rate) in [("10 Hz", 10), ("1 kHz", 1_000), ("flat out", u64::MAX)] {
        let table = Table::options().engines(8).memfd().unwrap();
        let publisher = publishing(&table, vec![calm(); 8], rate).unwrap();
        let mut read = read_statistics(&table, 8);
        group.bench_function(name, |bencher| bencher.iter(|| read(1).unwrap()));
        drop(publisher);
    }
    group.finish();
}

/// The view of everything, frontends included, as the command and the metrics take it.
fn view(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("view of the whole table");
    for engines in [8, 256, 4096] {
        let table = fresh_table(engines).unwrap();
        let _frontend = table.join().unwrap();
        group.bench_function(BenchmarkId::new("engines", engines), |bencher| {
            bencher.iter(|| black_box(table.view()));
        });
    }
    group.finish();
}
