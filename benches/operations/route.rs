//! Placing requests and finishing them: by what is asked for, by the number of engines and of
//! processes, and by what is published meanwhile.

use crate::sampling::{per_operation, timed};
use criterion::{BenchmarkId, Criterion, Throughput};
use headcount::{EngineId, EngineStats, Permit, Request, Table};
use headcount_benches::background::publishing;
use headcount_yardstick::{
    Contenders, Processes, bare_pair, calm, pressed, route_and_finish, shared_line,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// All of it.
pub(crate) fn all(criterion: &mut Criterion) {
    one_by_one(criterion);
    both(criterion);
    requests(criterion);
    processes(criterion);
    while_published(criterion);
}

const ENGINES: [usize; 6] = [2, 8, 64, 256, 1024, 4096];
const PROCESSES: [usize; 4] = [1, 2, 4, 8];

fn table(engines: usize) -> Table {
    Table::options().engines(engines).memfd().unwrap()
}

/// Route alone and finish alone, over so many requests that reading the clock does not count.
fn one_by_one(criterion: &mut Criterion) {
    for (name, timed_part) in [("route", 0), ("finish", 1)] {
        let mut group = criterion.benchmark_group(name);
        for engines in ENGINES {
            let frontend = table(engines).join().unwrap();
            group.bench_function(BenchmarkId::new("engines", engines), |bencher| {
                bencher.iter_custom(|times| {
                    const AT_ONCE: u64 = 1024;
                    let mut spent = [Duration::ZERO; 2];
                    let mut permits: Vec<Permit> = Vec::with_capacity(AT_ONCE as usize);
                    let mut left = times;
                    while left > 0 {
                        let batch = left.min(AT_ONCE);
                        let start = Instant::now();
                        for _ in 0..batch {
                            permits.push(black_box(frontend.route().unwrap()));
                        }
                        let routed = Instant::now();
                        permits.clear();
                        spent[0] += routed - start;
                        spent[1] += routed.elapsed();
                        left -= batch;
                    }
                    spent[timed_part]
                });
            });
        }
        group.finish();
    }
}

/// Route and finish, without a snapshot, with one that does not matter, and with one that does.
fn both(criterion: &mut Criterion) {
    let snapshots: [(&str, Option<EngineStats>); 3] = [
        ("no snapshot", None),
        ("fresh snapshot", Some(calm())),
        ("KV pressure", Some(pressed())),
    ];
    for (name, stats) in snapshots {
        let mut group = criterion.benchmark_group(format!("route and finish, {name}"));
        for engines in ENGINES {
            let table = table(engines);
            let frontend = table.join().unwrap();
            let mut publisher = table.publisher().unwrap();
            let stats = stats.map(|stats| vec![stats; engines]);
            let mut publish = || {
                if let Some(stats) = &stats {
                    publisher.publish(stats).unwrap();
                }
            };
            group.bench_function(BenchmarkId::new("engines", engines), |bencher| {
                timed(bencher, &mut publish, || {
                    drop(black_box(frontend.route().unwrap()));
                });
            });
        }
        group.finish();
    }
}

/// Requests that ask for something.
fn requests(criterion: &mut Criterion) {
    const MANY: usize = 64;
    let tried = [1, 2].map(|index| EngineId::new(index, 2));
    let requests = [
        ("tokens", Request::new().tokens(812)),
        ("pin", Request::new().pin(3)),
        ("exclude", Request::new().exclude(&tried)),
        ("prefer", Request::new().prefer(3, 8)),
    ];
    let mut group = criterion.benchmark_group("route and finish, 8 engines");
    let frontend = table(8).join().unwrap();
    for (name, request) in requests {
        group.bench_function(name, |bencher| {
            bencher.iter(|| drop(black_box(frontend.route_with(&request).unwrap())));
        });
    }
    group.throughput(Throughput::Elements(MANY as u64));
    group.bench_function("route_many of 64", |bencher| {
        bencher.iter(|| drop(black_box(frontend.route_many(MANY).unwrap())));
    });
    group.finish();
}

/// Several processes at once, beside a bare pair between as many.
fn processes(criterion: &mut Criterion) {
    for engines in [8, 64] {
        let title = format!("route and finish, {engines} engines, each of several processes");
        let mut group = criterion.benchmark_group(title);
        for count in PROCESSES {
            let (table, line) = (table(engines), shared_line().unwrap());
            let mut processes = Processes::start(count, |worker| {
                let workloads = vec![bare_pair(&line), route_and_finish(table.join()?)];
                Ok(Contenders::new(worker, workloads))
            })
            .unwrap();
            for (which, name) in ["bare pair", "processes"].into_iter().enumerate() {
                group.bench_function(BenchmarkId::new(name, count), |bencher| {
                    per_operation(bencher, &mut processes, which);
                });
            }
        }
        group.finish();
    }
}

/// One process routes while another one publishes.
fn while_published(criterion: &mut Criterion) {
    let rates = [("10 Hz", 10), ("1 kHz", 1_000), ("flat out", u64::MAX)];
    for (name, stats) in [("calm", calm()), ("KV pressure", pressed())] {
        let title = format!("route and finish, 8 engines, publisher, {name}");
        let mut group = criterion.benchmark_group(title);
        for (rate_name, rate) in rates {
            let table = table(8);
            let frontend = table.join().unwrap();
            let publisher = publishing(&table, vec![stats; 8], rate).unwrap();
            group.bench_function(rate_name, |bencher| {
                bencher.iter(|| drop(black_box(frontend.route().unwrap())));
            });
            drop(publisher);
        }
        group.finish();
    }
}
