//! Route and finish, by the number of engines, beside the bare pair of additions that is the limit.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use headcount::{EngineStats, Table};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

fn route_and_finish(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("route and finish");
    let count = AtomicU64::new(0);
    group.bench_function("bare pair", |bencher| {
        bencher.iter(|| {
            black_box(&count).fetch_add(1, Ordering::SeqCst);
            black_box(&count).fetch_sub(1, Ordering::SeqCst)
        });
    });
    for engines in [8, 64, 256] {
        let table = Table::options().engines(engines).memfd().unwrap();
        let frontend = table.join().unwrap();
        let stats = EngineStats {
            running: 20,
            kv_usage: 0.4,
            ..Default::default()
        };
        let mut publisher = table.publisher().unwrap();
        publisher.publish(&vec![stats; engines]).unwrap();
        group.bench_function(BenchmarkId::new("engines", engines), |bencher| {
            bencher.iter(|| drop(black_box(frontend.route().unwrap())));
        });
    }
    group.finish();
}

criterion_group!(benches, route_and_finish);
criterion_main!(benches);
