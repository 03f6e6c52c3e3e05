//! The table's cap against requests that are being placed: once a change of it has returned, no request is
//! counted by another one.

use crate::algorithm::word::Amount;
use crate::explore::{explore, race};
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

#[test]
fn c4_a_lowered_cap_of_the_table_against_a_taker() {
    explore("a lowered cap of the table", 3, || {
        let scene = Arc::new(Scene::new(2, 2).with_total(2));
        let (a, b) = (scene.join(), scene.join());
        assert!(scene.route_to(1, b, 0));
        let lower = scene.with(|scene| {
            scene.set_total(Some(1));
            scene.in_flight()
        });
        let take = scene.with(move |scene| scene.route_to(0, a, 0));
        let (at_return, _) = race(lower, take);
        assert_eq!(scene.in_flight(), at_return, "placed by the old cap");
    });
}

#[test]
fn c4_a_first_cap_of_the_table_against_a_taker_without_and_one_with_it() {
    // The first has chosen its engine when there was no cap, and has yet to be counted there. If it is, the
    // other one must not overlook it.
    explore("a first cap of the table", 2, || {
        let scene = Arc::new(Scene::new(2, 2));
        let (a, b) = (scene.join(), scene.join());
        let seen = scene.counter().load(1);
        let without = scene.with(move |scene| {
            let lane = scene.registry().lane(b, 0);
            (scene.counter()).attempt(lane, 1, seen, Amount::request(0))
        });
        let without = thread::spawn(without);
        let cap = scene.with(|scene| {
            scene.set_total(Some(1));
            scene.in_flight()
        });
        let with = scene.with(move |scene| scene.route_to(0, a, 0));
        let (at_return, _) = race(cap, with);
        without.join().unwrap();
        let most = at_return.max(1);
        assert!(scene.in_flight() <= most, "more than {most}");
    });
}

#[test]
fn c4_a_raised_cap_of_the_table_gives_its_places() {
    explore("a raised cap of the table", 2, || {
        let scene = Arc::new(Scene::new(2, 2).with_total(1));
        let (a, b) = (scene.join(), scene.join());
        assert!(scene.route_to(1, b, 0));
        let raise = scene.with(move |scene| {
            scene.set_total(Some(2));
            scene.route_to(1, b, 0)
        });
        let take = scene.with(move |scene| scene.route_to(0, a, 0));
        let (one, other) = race(raise, take);
        assert!(one || other, "there is a place for one more");
        assert_eq!(scene.in_flight(), 2);
    });
}
