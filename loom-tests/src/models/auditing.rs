//! `verify` finds no fault while other processes go on.
//!
//! Bounds: two preemptions let the operation come in between any two loads of the look, and the look
//! between any two stores of the operation.

use crate::death::live_for;
use crate::explore::{explore, explore_deaths, race};
use crate::scene::Scene;
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
