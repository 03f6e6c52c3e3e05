//! The choice against changes that make another engine more attractive: once such a change has returned,
//! no request is counted by the state before it.
//!
//! Bounds: the change has to come in between two accesses of the route, and the route between two of the
//! change; three preemptions let each do so once and go on.

use crate::algorithm::word::RowState;
use crate::explore::{explore, race};
use crate::scene::Scene;
use std::sync::Arc;

/// Two engines with this many requests in flight, all of the frontend in slot 0. Slot 1 has joined.
fn loaded(counts: [usize; 2]) -> Arc<Scene> {
    let scene = Arc::new(Scene::new(2, 2));
    let (slot, _) = (scene.join(), scene.join());
    for (engine, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            assert!(scene.route_to(engine, slot, 0));
        }
    }
    scene
}

/// Races a route against a change of engine 0, before which a request goes to engine 1. Once the change
/// has returned, engine 1 gets no request.
fn races(
    scene: &Arc<Scene>,
    change: impl FnOnce(&Scene) + 'static,
    route: impl FnOnce(&Scene) -> usize + 'static,
) {
    let changed = scene.with(move |scene: &Scene| {
        change(scene);
        scene.counted(1).0
    });
    let (at_return, routed_to) = race(changed, scene.with(move |scene: &Scene| route(scene)));
    assert!(
        routed_to == 0 || scene.counted(1).0 == at_return,
        "counted on engine 1 after engine 0 had come up"
    );
}

#[test]
fn c8_up_against_a_choice_by_count() {
    explore("up against a choice by count", 3, || {
        let scene = loaded([0, 1]);
        scene.rewrite(0, RowState::Down);
        races(&scene, |s| s.up(0), |s| s.route_by_count(1));
    });
}

#[test]
fn c8_up_against_another_choice() {
    explore("up against another choice", 3, || {
        let scene = loaded([0, 1]);
        scene.rewrite(0, RowState::Down);
        let route = |s: &Scene| s.route_while_unchanged(1).expect("engine 1 takes requests");
        races(&scene, |s| s.up(0), route);
    });
}

#[test]
fn c8_a_higher_cap_against_a_choice() {
    explore("a higher cap against a choice", 3, || {
        let scene = loaded([1, 2]);
        scene.set_cap(0, 1);
        let route = |s: &Scene| s.route_while_unchanged(1).expect("engine 1 takes requests");
        races(&scene, |s| s.set_cap(0, 5), route);
    });
}

#[test]
fn c8_up_against_a_choice_of_an_engine_that_comes_up_at_the_same_time() {
    explore("two engines come up", 3, || {
        let scene = loaded([0, 1]);
        scene.rewrite(0, RowState::Down);
        scene.rewrite(1, RowState::Down);
        // Engine 1 may come up after the other change has passed it; what follows its rewrite is not needed
        // for it to be chosen.
        let route = |scene: &Scene| {
            scene.rewrite(1, RowState::Active);
            scene.route_while_unchanged(1).expect("engine 1 is up")
        };
        races(&scene, |scene| scene.up(0), route);
    });
}

#[test]
fn c2_two_choices_by_count_take_an_engine_each() {
    explore("two choices by count", 3, || {
        let scene = loaded([0, 0]);
        let route = |slot| scene.with(move |scene: &Scene| scene.route_by_count(slot));
        let (one, other) = race(route(0), route(1));
        assert_ne!(one, other);
    });
}
