//! Running a scene under every interleaving within bounds, and saying how many that were.

use loom::model::Builder;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Runs `scene` under every interleaving with at most so many preemptions.
pub(crate) fn explore(name: &str, preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let start = Instant::now();
    let executions = run(preemptions, scene);
    println!("{name}: {executions} executions, {:.1?}", start.elapsed());
}

/// Runs `scene` with a death after 0, 1, 2, ... accesses, until no process dies of it any more.
///
/// The scene is told after how many, and returns whether a process died.
pub(crate) fn explore_deaths(
    name: &str,
    preemptions: usize,
    scene: impl Fn(usize) -> bool + Sync + Send + 'static,
) {
    let start = Instant::now();
    let (points, executions) = deaths(preemptions, scene);
    let took = start.elapsed();
    println!("{name}: {points} points of death, {executions} executions, {took:.1?}");
}

/// The same for two deaths, one after the other: of the process that acts first, and of its reaper.
pub(crate) fn explore_two_deaths(
    name: &str,
    preemptions: usize,
    scene: impl Fn(usize, usize) -> [bool; 2] + Sync + Send + 'static,
) {
    let start = Instant::now();
    let scene = Arc::new(scene);
    let (mut points, mut executions) = (0, 0);
    for first in 0.. {
        let first_died = Arc::new(AtomicBool::new(false));
        let (scene, observed) = (Arc::clone(&scene), Arc::clone(&first_died));
        let more = deaths(preemptions, move |second| {
            let [first_died, second_died] = scene(first, second);
            if first_died {
                observed.store(true, Ordering::Relaxed);
            }
            second_died
        });
        points += more.0;
        executions += more.1;
        if !first_died.load(Ordering::Relaxed) {
            break;
        }
    }
    let took = start.elapsed();
    println!("{name}: {points} pairs of points of death, {executions} executions, {took:.1?}");
}

/// How many points of death there were, and how many executions that took.
fn deaths(
    preemptions: usize,
    scene: impl Fn(usize) -> bool + Sync + Send + 'static,
) -> (usize, usize) {
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
            assert!(accesses > 0, "no process ever died");
            return (accesses, executions);
        }
    }
    unreachable!("every operation ends")
}

/// Runs both at once.
///
/// Each in a thread of its own: if one of them were the thread that starts the other, loom would miss
/// scenes in which the other comes first.
pub(crate) fn race<A: 'static, B: 'static>(
    one: impl FnOnce() -> A + 'static,
    other: impl FnOnce() -> B + 'static,
) -> (A, B) {
    let (one, other) = (thread::spawn(one), thread::spawn(other));
    (one.join().unwrap(), other.join().unwrap())
}

fn run(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    // A bound on the length of one execution, against loops without end; none comes near it.
    builder.max_branches = 10_000;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    executions.load(Ordering::Relaxed)
}
