//! C5: tokens that change while their request lives. Exact, within the caps, and whole after a death at each access.
//!
//! Bounds: as for the other operations of lanes. Three preemptions reach every scene of two operations and a late
//! helper; two let one side come in between any two accesses of the other, and go on once more, where an operation
//! changes the table's own row as well.

use crate::death::live_for;
use crate::explore::{explore, explore_deaths, race};
use crate::scene::Scene;
use std::sync::Arc;

#[test]
fn c5_tokens_change_while_another_lane_of_the_frontend_finishes() {
    for after in [2, 9] {
        let name = format!("5 tokens become {after}, and a permit dropped on another thread");
        explore(&name, 3, move || {
            let scene = Arc::new(Scene::with_lanes(1, 1, 2));
            let slot = scene.join();
            let lane = |index| scene.registry().lane(slot, index);
            let (one, two) = (lane(0), lane(1));
            scene.route_as(one, 5).unwrap();
            scene.route_as(one, 4).unwrap();
            let set = scene.with(move |scene| scene.set_tokens_as(one, 0, 5, after));
            let finish = scene.with(move |scene| scene.finish_as(two, 0, 4));
            let (is_set, ()) = race(set, finish);
            assert!(is_set);
            scene.assert_counts(&[(0, after)]);
            let ledger = scene.ledger(slot, 0);
            assert_eq!((ledger.requests(), ledger.tokens), (1, after.into()));
            assert_eq!((ledger.admitted, ledger.finished), (2, 1));
        });
    }
}

#[test]
fn c5_tokens_change_while_another_frontend_changes_its_own() {
    explore("two requests change their tokens", 3, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (a, b) = (scene.join(), scene.join());
        scene.route(a, 5);
        scene.route(b, 7);
        let set = |slot, before, after| {
            scene.with(move |scene| assert!(scene.set_tokens(slot, 0, before, after)))
        };
        race(set(a, 5, 9), set(b, 7, 3));
        scene.assert_counts(&[(0, 9), (0, 3)]);
    });
}

#[test]
fn c5_the_last_tokens_of_an_engine_and_two_takers() {
    // One request would grow, and another one would be placed.
    explore("the last tokens of an engine", 3, || {
        let scene = Arc::new(Scene::new(1, 2).with_token_cap(10));
        let (a, b) = (scene.join(), scene.join());
        scene.route(a, 5);
        let grow = scene.with(move |scene| scene.set_tokens(a, 0, 5, 9));
        let route = scene.with(move |scene| scene.route_if_it_has_room(0, b, 3));
        match race(grow, route) {
            (true, false) => scene.assert_counts(&[(0, 9)]),
            (false, true) => scene.assert_counts(&[(0, 5), (0, 3)]),
            both => panic!("one of the two, not {both:?}"),
        }
    });
}

#[test]
fn c5_the_last_tokens_of_the_table_and_two_takers() {
    // On different engines, so that it is the table's own row alone that stands between them.
    explore("the last tokens of the table", 1, || {
        let scene = Arc::new(Scene::new(2, 2).with_totals(None, 10));
        let (a, b) = (scene.join(), scene.join());
        scene.route_to(0, a, 0);
        scene.route_to(1, b, 0);
        let grow = |slot| scene.with(move |scene| scene.set_tokens(slot, slot, 0, 6));
        let (one, other) = race(grow(a), grow(b));
        assert!(one != other, "one of the two");
        let tokens = |is_grown| if is_grown { 6 } else { 0 };
        scene.assert_counts(&[(0, tokens(one)), (1, tokens(other))]);
    });
}

#[test]
fn c5_tokens_that_are_given_back_make_room() {
    // Or the taker came before them. What was given back is not there twice.
    explore("tokens that are given back", 3, || {
        let scene = Arc::new(Scene::new(1, 3).with_token_cap(10));
        let slots = [scene.join(), scene.join(), scene.join()];
        scene.route(slots[0], 9);
        let shrink = scene.with(move |scene| assert!(scene.set_tokens(slots[0], 0, 9, 4)));
        let take = scene.with(move |scene| scene.route_if_it_has_room(0, slots[1], 5));
        let ((), taken) = race(shrink, take);
        let again = scene.route_if_it_has_room(0, slots[2], 5);
        assert!(taken != again, "there is room for one");
        scene.assert_counts(&[(0, 4), (0, 5)]);
    });
}

#[test]
fn c5_tokens_that_are_added_need_no_place_below_the_tables_cap() {
    // Another request is being placed, and has two places for a moment.
    explore("tokens that are added to a full table", 1, || {
        let scene = Arc::new(Scene::new(1, 2).with_totals(Some(2), 100));
        let (a, b) = (scene.join(), scene.join());
        scene.route_to(0, a, 0);
        let grow = scene.with(move |scene| scene.set_tokens(a, 0, 0, 9));
        let route = scene.with(move |scene| scene.route_to(0, b, 0));
        let (is_set, is_placed) = race(grow, route);
        assert!(is_set && is_placed);
        scene.assert_counts(&[(0, 9), (0, 0)]);
    });
}

#[test]
fn c1_a_recount_while_tokens_change_is_right() {
    explore("a recount while tokens change", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        scene.route(slot, 5);
        let set = scene.with(move |scene| assert!(scene.set_tokens(slot, 0, 5, 9)));
        let recount = scene.with(move |scene| {
            let (lane, counter) = (scene.registry().lane(slot, 0), scene.counter());
            let seen = counter.load(0);
            let tokens = counter.tokens_while(0, seen)?;
            let ledger = counter.ledger_at(lane, 0, seen)?;
            counter.still(0, seen).then_some((tokens, ledger))
        });
        if let ((), Some((tokens, ledger))) = race(set, recount) {
            assert!([5, 9].contains(&tokens), "{tokens}");
            assert_eq!((ledger.admitted, ledger.finished), (1, 0));
            assert_eq!(ledger.tokens, i64::from(tokens));
        }
    });
}

/// A frontend dies while the tokens of its request change from 5 to `after`, and another one goes on with the same
/// engine; then it is reaped.
fn death(name: &str, preemptions: usize, scene: fn() -> Scene, after: u32) {
    explore_deaths(name, preemptions, move |accesses| {
        let scene = Arc::new(scene());
        let (dead, survivor) = (scene.join(), scene.join());
        scene.route_to(0, dead, 5);
        let life = scene.with(move |scene| {
            live_for(accesses, || scene.set_tokens(dead, 0, 5, after)).is_none()
        });
        let route = scene.with(move |scene| scene.route_to(0, survivor, 3));
        let (died, is_placed) = race(life, route);
        assert!(is_placed);
        let (requests, tokens) = scene.counted(0);
        let possible = [3 + 5, 3 + after].contains(&tokens);
        assert!(requests == 2 && possible, "{requests}, {tokens}");
        assert!(died || tokens == 3 + after);
        scene.dies(dead);
        scene.reap();
        scene.assert_counts(&[(0, 3)]);
        let ledger = scene.ledger(dead, 0);
        assert_eq!((ledger.requests(), ledger.tokens), (0, 0));
        assert_eq!((ledger.admitted, ledger.finished), (1, 1));
        died
    });
}

#[test]
fn k1_death_while_tokens_are_added() {
    death("death while tokens are added", 3, || Scene::new(1, 2), 9);
}

#[test]
fn k1_death_while_tokens_are_given_back() {
    death(
        "death while tokens are given back",
        3,
        || Scene::new(1, 2),
        2,
    );
}

#[test]
fn k1_death_while_tokens_are_added_under_the_tables_cap() {
    // Two rows are changed, one after the other. How the changes of one row interleave with others' is shown above,
    // so here the survivor goes on after the death.
    explore_deaths("death while tokens are added under a cap", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 2).with_totals(None, 16));
        let (dead, survivor) = (scene.join(), scene.join());
        scene.route_to(0, dead, 5);
        let died = live_for(accesses, || scene.set_tokens(dead, 0, 5, 9)).is_none();
        scene.dies(dead);
        // There is room beside all that the dead one may have reserved.
        assert!(scene.route_to(0, survivor, 3));
        scene.reap();
        scene.assert_counts(&[(0, 3)]);
        assert!(scene.set_tokens(survivor, 0, 3, 16));
        died
    });
}

#[test]
fn k1_death_after_a_change_of_tokens_that_is_helped() {
    // The helper may see the number of the second operation beside the intent and the word of the first.
    explore_deaths("death after a change of tokens", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let (dead, survivor) = (scene.join(), scene.join());
        scene.route(dead, 0);
        let life = scene.with(move |scene| {
            let change = || {
                scene.set_tokens(dead, 0, 0, 9);
                scene.set_tokens(dead, 0, 9, 2);
            };
            live_for(accesses, change).is_none()
        });
        let (died, _) = race(life, scene.with(move |scene| scene.route(survivor, 0)));
        scene.dies(dead);
        scene.reap();
        scene.assert_counts(&[(0, 0)]);
        died
    });
}
