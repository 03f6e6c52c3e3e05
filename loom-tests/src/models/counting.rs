//! C1 to C5 and C8 without deaths: operations of lanes on the same engines.
//!
//! Bounds: an operation is about a dozen accesses, of which two or three are shared with the other
//! lane's. To break a pair of operations takes one switch into the middle of one of them and one
//! back; a late helper takes one more. So three preemptions reach every such scene with two
//! threads, and two with three threads, where switching at the end of a thread costs none.

use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::algorithm::word::{Amount, RowState};
use crate::explore::{explore, race};
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

#[test]
fn c2_two_lanes_route_to_the_same_engine() {
    explore("two lanes route", 3, || {
        let scene = Arc::new(Scene::new(2, 2));
        let (a, b) = (scene.join(), scene.join());
        let route = |slot| scene.with(move |scene| scene.route(slot, 0).unwrap());
        let (one, other) = race(route(a), route(b));
        assert_ne!(one, other, "two requests over two equal engines");
        scene.assert_counts(&[(0, 0), (1, 0)]);
    });
}

#[test]
fn c3_route_against_finish() {
    explore("route against finish", 3, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (a, b) = (scene.join(), scene.join());
        let first = scene.route(a, 5).unwrap();
        let finish = scene.with(move |scene| scene.finish(a, first, 5));
        let route = scene.with(move |scene| scene.route(b, 7).unwrap());
        let ((), mine) = race(finish, route);
        scene.assert_counts(&[(mine, 7)]);
        scene.finish(b, mine, 7);
        scene.assert_counts(&[]);
    });
}

#[test]
fn c5_tokens_are_seen_with_their_requests() {
    explore("tokens are seen with their requests", 2, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (a, b) = (scene.join(), scene.join());
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.route(a, 10))
        };
        let looker = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.counted(0))
        };
        scene.route(b, 10);
        let (requests, tokens) = looker.join().unwrap();
        assert_eq!(tokens, 10 * requests);
        other.join().unwrap();
        scene.assert_counts(&[(0, 10), (0, 10)]);
    });
}

#[test]
fn c5_what_is_seen_of_two_operations_is_never_mixed() {
    explore("a look at two operations", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let a = scene.join();
        let writer = scene.with(move |scene| {
            scene.route(a, 10);
            scene.route(a, 20);
        });
        let ((), seen) = race(writer, scene.with(|scene| scene.counted(0)));
        assert!([(0, 0), (1, 10), (2, 30)].contains(&seen), "{seen:?}");
        scene.assert_counts(&[(0, 10), (0, 20)]);
    });
}

#[test]
fn c5_a_helper_that_comes_late_does_no_harm() {
    // A lane that goes on to its next operation while others are still helping with its last one.
    explore("a late helper", 2, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (a, b) = (scene.join(), scene.join());
        let writer = scene.with(move |scene| {
            let first = scene.route(a, 10).unwrap();
            scene.finish(a, first, 10);
            scene.route(a, 20).unwrap();
        });
        race(writer, scene.with(move |scene| scene.route(b, 1)));
        scene.assert_counts(&[(0, 20), (0, 1)]);
    });
}

#[test]
fn c5_two_helpers_help_once() {
    explore("two helpers", 2, || {
        let scene = Arc::new(Scene::new(1, 3));
        let slots = [scene.join(), scene.join(), scene.join()];
        let others = [slots[0], slots[1]].map(|slot| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.route(slot, 10))
        });
        scene.route(slots[2], 1);
        for other in others {
            other.join().unwrap();
        }
        scene.assert_counts(&[(0, 10), (0, 10), (0, 1)]);
    });
}

#[test]
fn c4_the_last_free_place_and_two_takers() {
    explore("the last place of an engine", 3, || {
        let scene = Arc::new(Scene::new(1, 2).with_cap(1));
        let (a, b) = (scene.join(), scene.join());
        let take = |slot| scene.with(move |scene| scene.route(slot, 0));
        let (one, other) = race(take(a), take(b));
        assert!(one.is_some() != other.is_some(), "one of the two");
        scene.assert_counts(&[(0, 0)]);
    });
}

#[test]
fn c4_the_last_free_place_of_the_table_and_two_takers() {
    // On different engines, so that it is the table's own row alone that stands between them.
    explore("the last place of the table", 3, || {
        let scene = Arc::new(Scene::new(2, 2).with_total(1));
        let (a, b) = (scene.join(), scene.join());
        let take = |engine, slot| scene.with(move |scene| scene.route_to(engine, slot, 0));
        let (one, other) = race(take(0, a), take(1, b));
        assert!(one != other, "one of the two");
        scene.assert_counts(&[(usize::from(other), 0)]);
    });
}

#[test]
fn c4_a_place_under_the_tables_cap_is_given_back_when_the_engine_has_changed() {
    explore("a place that is given back", 2, || {
        let scene = Arc::new(Scene::new(1, 2).with_total(9));
        let (a, b) = (scene.join(), scene.join());
        let route = |slot| scene.with(move |scene| scene.route(slot, 0));
        race(route(a), route(b));
        scene.assert_counts(&[(0, 0), (0, 0)]);
    });
}

#[test]
fn c3_a_permit_is_finished_by_another_lane_of_its_frontend() {
    explore("a permit dropped on another thread", 3, || {
        let scene = Arc::new(Scene::with_lanes(1, 1, 2));
        let slot = scene.join();
        let lane = |index| scene.registry().lane(slot, index);
        let (one, two) = (lane(0), lane(1));
        let permit = scene.route_as(one, 4).unwrap();
        let finish = scene.with(move |scene| scene.finish_as(two, permit, 4));
        let route = scene.with(move |scene| scene.route_as(one, 6).unwrap());
        let ((), mine) = race(finish, route);
        scene.assert_counts(&[(mine, 6)]);
        let ledger = scene.ledger(slot, 0);
        assert_eq!((ledger.requests(), ledger.tokens), (1, 6));
        assert_eq!((ledger.admitted, ledger.finished), (2, 1));
    });
}

#[test]
fn c8_nothing_is_admitted_after_drain_has_returned() {
    explore("drain against route", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        let drain = scene.with(|scene| {
            scene.rewrite(0, RowState::Draining);
            scene.counted(0)
        });
        let route = scene.with(move |scene| scene.route(slot, 2));
        let (at_drain, _) = race(drain, route);
        assert_eq!(scene.counted(0), at_drain);
    });
}

#[test]
fn c8_a_request_chosen_for_an_engine_is_not_counted_on_its_successor() {
    explore("remove and add against route", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        // Which engine is in the slot: changed only while nothing is counted there.
        let engine = Arc::new(AtomicU64::new(1));
        let route = {
            let (scene, engine) = (Arc::clone(&scene), Arc::clone(&engine));
            move || {
                let mut chosen = 0;
                let lane = scene.registry().lane(slot, 0);
                let placed = scene.rows().place(lane, Amount::request(0), || {
                    let choice = scene.choice(0);
                    chosen = engine.load(Ordering::Relaxed);
                    choice.seen.is_active().then_some(choice).ok_or(())
                });
                placed.is_ok().then_some(chosen)
            }
        };
        let change = scene.with(move |scene| {
            let removed = scene.counter().rewrite(0, |_| Some(RowState::Removed));
            let empty = removed.unwrap().value() == 0;
            if empty {
                engine.store(2, Ordering::Relaxed);
            }
            scene.rewrite(0, RowState::Active);
            empty
        });
        let (placed, empty) = race(route, change);
        match placed {
            // It came before the removal, so the slot was not empty, or it saw the new engine.
            Some(chosen) => assert_eq!(chosen, if empty { 2 } else { 1 }),
            None => assert!(
                empty,
                "it can only have been refused while there was no engine"
            ),
        }
    });
}
