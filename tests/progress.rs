//! P1: no process waits for another.
//!
//! Rules: docs/contract.md.

use headcount::{EngineStats, Request, Table};
use headcount_tests::{Actor, Random, Rounds, TestTable, ids, lanes_in_midst, spawn_all};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An engine for which the default policy reads the snapshot and the clock.
const PRESSED: EngineStats = EngineStats::new().waiting(3).running(0).kv_usage(0.9);

#[test]
fn p1_route_and_finish_allocate_nothing() {
    let options = Table::options()
        .engines(8)
        .max_in_flight(100)
        .max_tokens(1000);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let mut publisher = table.publisher().unwrap();
    publisher.publish(&[PRESSED; 8]).unwrap();
    drop(frontend.route().unwrap());
    let excluded = ids(&table, [3]);
    let before = ALLOCATIONS.get();
    for _ in 0..1000 {
        let one = frontend.route().unwrap();
        let mut two = frontend
            .route_with(&Request::new().tokens(800).prefer(1, 8).exclude(&excluded))
            .unwrap();
        two.set_tokens(1000).unwrap();
        two.set_tokens(3).unwrap();
        drop((one, two));
    }
    publisher.publish(&[PRESSED; 8]).unwrap();
    assert_eq!(ALLOCATIONS.get() - before, 0);
    drop(Box::new(1));
    assert_eq!(ALLOCATIONS.get() - before, 2, "the counter counts");
}

#[test]
fn p1_route_and_finish_make_no_system_call() {
    // The kernel kills the child at its first system call but read, write and exit.
    let table = TestTable::with_engines(8);
    let mut actor = Actor::joined(table.path());
    let mut publisher = table.publisher().unwrap();
    publisher.publish(&[PRESSED; 8]).unwrap();
    actor.route_without_system_calls(10000);
}

#[test]
fn p1_a_process_that_stops_anywhere_keeps_no_other_from_going_on() {
    let table = TestTable::new(&Table::options().engines(2).max_in_flight(1000));
    let mut actors = spawn_all(table.path(), 3);
    let mut worker = Actor::joined(table.path());
    let mut random = Random::seeded();
    let mut rounds = Rounds::new(60, "stops in the midst of an operation");
    while rounds.another() {
        for actor in &mut actors {
            actor.churn(2);
        }
        random.pause(3000);
        // Frozen in the middle of whatever they were doing to the same two engines.
        actors.iter().for_each(Actor::stop);
        rounds.fell(!lanes_in_midst(&table).is_empty());
        let wins = worker.break_ties(1000);
        assert_eq!(wins.iter().sum::<u32>(), 1000);
        actors.iter().for_each(Actor::resume);
        for actor in &mut actors {
            actor.pause();
            actor.finish_all();
        }
        assert_eq!(table.in_flight(), [0, 0]);
    }
}
