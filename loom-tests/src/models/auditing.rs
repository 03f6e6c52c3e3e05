//! `verify` finds no fault while other processes go on.
//!
//! Bounds: two preemptions let the operation come in between any two loads of the look, and the look
//! between any two stores of the operation.

use crate::algorithm::word::TURN;
use crate::death::live_for;
use crate::explore::{explore, explore_deaths, race};
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

/// Requests and tokens on the engine's row, and what the ledger of the slot's lane says of them. `None`: the
/// row has moved meanwhile.
fn recount(scene: &Scene, slot: usize) -> Option<[(i64, i64); 2]> {
    let (lane, counter) = (scene.registry().lane(slot, 0), scene.counter());
    let seen = counter.load(0);
    let tokens = counter.tokens_while(0, seen)?;
    let ledger = counter.ledger_at(lane, 0, seen)?;
    let counted = (i64::from(seen.value()), i64::from(tokens));
    (counter.still(0, seen)).then_some([counted, (ledger.requests(), ledger.tokens)])
}

fn assert_equal(recounted: Option<[(i64, i64); 2]>) {
    if let Some([counted, ledger]) = recounted {
        assert_eq!(counted, ledger);
    }
}

#[test]
fn c1_a_recount_of_a_row_that_stands_still_is_right() {
    explore("a recount of a row", 2, || {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        let route = scene.with(move |scene| _ = scene.route(slot, 5));
        let ((), recounted) = race(route, scene.with(move |scene| recount(scene, slot)));
        assert_equal(recounted);
    });
}

#[test]
fn c1_a_recount_while_a_dead_lane_is_recovered_is_right() {
    explore_deaths("a recount during a recovery", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        let life_and_recovery = scene.with(move |scene| {
            let died = live_for(accesses, || scene.route(slot, 5)).is_none();
            // What a reap does first. What it takes back after that is one more operation.
            scene.counter().recover(scene.registry().lane(slot, 0));
            died
        });
        let recount = scene.with(move |scene| recount(scene, slot));
        let (died, recounted) = race(life_and_recovery, recount);
        assert_equal(recounted);
        died
    });
}

#[test]
fn c1_a_recount_beside_a_lane_that_another_one_tells_of_later() {
    // The witness of the operation on row 0 makes room for that of the one on row 1.
    recount_beside("a recount, and a later witness", 2, 0, |scene, slot| {
        scene.route_to(0, slot, 0);
        scene.route_to(1, slot, 0);
    });
}

#[test]
fn c1_a_recount_beside_a_lane_that_sweeps() {
    // The witness of the operation on row 0 is swept before the one on row 1.
    let last = TURN - 2;
    recount_beside("a recount, and a sweep", 2, last, |scene, slot| {
        scene.route_to(0, slot, 0);
    });
}

/// A recount of what a lane holds of row 0, while that lane counts there and goes on to row 1, and another one
/// overwrites its words.
fn recount_beside(name: &str, preemptions: usize, last: u64, overwrite: fn(&Scene, usize)) {
    explore(name, preemptions, move || {
        let scene = Arc::new(Scene::new(2, 2));
        let [slot, other] = [scene.join(), scene.join()];
        scene.lane(slot).skip_to(last);
        let overwrites = thread::spawn(scene.with(move |scene| overwrite(scene, other)));
        let routes = scene.with(move |scene| {
            scene.route_to(0, slot, 0);
            scene.route_to(1, slot, 0);
        });
        let recount = scene.with(move |scene| {
            let counter = scene.counter();
            let seen = counter.load(0);
            // Both are counted, and the other one came last.
            if seen.value() < 2 || seen.lane() == scene.registry().lane(slot, 0) {
                return None;
            }
            let ledger = counter.ledger_at(scene.registry().lane(slot, 0), 0, seen)?;
            Some(ledger.requests())
        });
        if let ((), Some(held)) = race(routes, recount) {
            assert_eq!(held, 1);
        }
        overwrites.join().unwrap();
    });
}

#[test]
fn a_lane_that_is_used_is_not_accused() {
    explore("a look at a lane", 2, || {
        let scene = Arc::new(Scene::new(1, 2));
        let [slot, other] = [scene.join(), scene.join()];
        scene.route(other, 0);
        let routes = scene.with(move |scene| {
            scene.route(slot, 5);
            scene.route(other, 0);
            scene.route(slot, 0);
        });
        let look = scene.with(move |scene| {
            let lane = scene.registry().lane(slot, 0);
            scene.counter().lane_fault(lane)
        });
        let ((), fault) = race(routes, look);
        assert_eq!(fault, None);
    });
}

#[test]
fn a_lane_whose_frontend_joins_meanwhile_is_not_accused() {
    explore("a look at a lane whose slot is taken", 2, || {
        let scene = Arc::new(Scene::new(1, 1));
        let life = scene.with(|scene| {
            let slot = scene.join();
            scene.route(slot, 0);
        });
        let look = scene.with(|scene| {
            let (slot, lane) = (&scene.registry().slots[0], scene.registry().lane(0, 0));
            let before = slot.word();
            let is_wrong = !before.is_taken() && scene.counter().is_in_an_operation(lane);
            is_wrong && slot.word() == before
        });
        let ((), is_accused) = race(life, look);
        assert!(!is_accused, "in an operation, and its slot is vacant");
    });
}
