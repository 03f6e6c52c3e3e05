//! `verify` finds no fault while other processes go on.
//!
//! Bounds: two preemptions let the operation come in between any two loads of the look, and the look
//! between any two stores of the operation.

use crate::explore::{explore, race};
use crate::scene::Scene;
use std::sync::Arc;

#[test]
fn c1_a_recount_of_a_row_that_stands_still_is_right() {
    explore("a recount of a row", 2, || {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        let route = scene.with(move |scene| _ = scene.route(slot, 5));
        let recount = scene.with(move |scene| {
            let (lane, counter) = (scene.registry().lane(slot, 0), scene.counter());
            let seen = counter.load(0);
            let tokens = counter.tokens_while(0, seen)?;
            let ledger = counter.ledger_at(lane, 0, seen)?;
            counter
                .still(0, seen)
                .then_some((seen.value(), tokens, ledger))
        });
        if let ((), Some((value, tokens, ledger))) = race(route, recount) {
            let counted = (i64::from(value), i64::from(tokens));
            assert_eq!(counted, (ledger.requests(), ledger.tokens));
        }
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
