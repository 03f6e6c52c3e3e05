//! Running a scene under every interleaving within bounds, and saying how many that were.

use loom::model::Builder;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Runs `scene` under every interleaving with at most so many preemptions.
pub(crate) fn explore(name: &str, preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let start = Instant::now();
    let executions = run(preemptions, scene);
    println!("{name}: {executions} executions, {:.1?}", start.elapsed());
}

/// Runs `scene` with a death after 0, 1, 2, ... accesses, until nobody dies of it any more.
///
/// The scene is told after how many, and returns whether somebody died.
pub(crate) fn explore_deaths(
    name: &str,
    preemptions: usize,
    scene: impl Fn(usize) -> bool + Sync + Send + 'static,
) {
    let start = Instant::now();
    let scene = Arc::new(scene);
    let mut executions = 0;
    for accesses in 0.. {
        let died = Arc::new(AtomicBool::new(false));
        let (inner, observed) = (Arc::clone(&scene), Arc::clone(&died));
        executions += run(preemptions, move || {
            if inner(accesses) {
                observed.store(true, Ordering::Relaxed);
            }
        });
        if !died.load(Ordering::Relaxed) {
            let took = start.elapsed();
            println!("{name}: {accesses} points of death, {executions} executions, {took:.1?}");
            assert!(accesses > 0, "nobody ever died");
            return;
        }
    }
}

fn run(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    executions.load(Ordering::Relaxed)
}
