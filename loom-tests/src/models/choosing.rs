//! The choice against changes of engines: once such a change has returned, no request is counted by what was
//! before it. And two choices against each other.
//!
//! Bounds: the change has to come in between two accesses of the route, and the route between two of the
//! change; three preemptions let each do so once and go on. Where a process dies in a change of limits first, one is left.

use crate::algorithm::word::RowState;
use crate::death::live_for;
use crate::explore::{explore, explore_deaths, race};
use crate::scene::{By, Scene};
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

/// Races a route against a change, before which a request goes to engine `former`. Once the change has returned, that
/// engine gets no request.
fn races(
    scene: &Arc<Scene>,
    former: usize,
    change: impl FnOnce(&Scene) + 'static,
    route: impl FnOnce(&Scene) -> usize + 'static,
) {
    let changed = scene.with(move |scene: &Scene| {
        change(scene);
        scene.counted(former).0
    });
    let (at_return, routed_to) = race(changed, scene.with(move |scene: &Scene| route(scene)));
    assert!(
        routed_to != former || scene.counted(former).0 == at_return,
        "counted on engine {former} by what was before"
    );
}

/// The same with a lane that has worked out terms before: they are of what was then.
fn races_with_kept_terms(scene: &Arc<Scene>, former: usize, change: impl FnOnce(&Scene) + 'static) {
    assert_eq!(scene.choose_by(By::Count, 1, 0), Some(former));
    assert!(scene.has_kept_terms(By::Count, 1));
    races(scene, former, change, route_by_count);
    assert_eq!(scene.choose_by(By::Count, 1, 0), Some(1 - former));
    assert!(scene.has_kept_terms(By::Count, 1));
}

fn route_by_count(scene: &Scene) -> usize {
    let routed = scene.route_by(By::Count, 1, 0);
    routed.expect("an engine takes requests")
}

#[test]
fn c8_up_against_a_choice_by_count() {
    explore("up against a choice by count", 3, || {
        let scene = loaded([0, 1]);
        scene.rewrite(0, RowState::Down);
        races(&scene, 1, |s| s.up(0), route_by_count);
    });
}

#[test]
fn c8_up_against_a_choice_by_kept_terms() {
    explore("up against a choice by kept terms", 3, || {
        let scene = loaded([0, 2]);
        scene.rewrite(0, RowState::Down);
        races_with_kept_terms(&scene, 1, |s| s.up(0));
    });
}

#[test]
fn c8_up_against_another_choice() {
    explore("up against another choice", 3, || {
        let scene = loaded([0, 1]);
        scene.rewrite(0, RowState::Down);
        let route = |s: &Scene| s.route_while_unchanged(1).expect("engine 1 takes requests");
        races(&scene, 1, |s| s.up(0), route);
    });
}

#[test]
fn c8_a_higher_cap_against_a_choice() {
    explore("a higher cap against a choice", 3, || {
        let scene = loaded([1, 2]);
        scene.set_cap(0, 1);
        let route = |s: &Scene| s.route_while_unchanged(1).expect("engine 1 takes requests");
        races(&scene, 1, |s| s.set_cap(0, 5), route);
    });
}

#[test]
fn c8_a_higher_cap_against_a_choice_by_kept_terms() {
    explore("a higher cap against kept terms", 3, || {
        let scene = loaded([1, 3]);
        scene.set_cap(0, 1);
        races_with_kept_terms(&scene, 1, |s| s.set_cap(0, 5));
    });
}

#[test]
fn c8_a_lower_cap_against_a_choice_by_kept_terms() {
    explore("a lower cap against kept terms", 3, || {
        let scene = loaded([1, 3]);
        races_with_kept_terms(&scene, 0, |s| s.set_cap(0, 1));
    });
}

#[test]
fn c8_a_higher_weight_against_a_choice_by_kept_terms() {
    explore("a higher weight against kept terms", 3, || {
        let scene = loaded([2, 1]);
        races_with_kept_terms(&scene, 1, |s| s.set_weight(0, 8.0));
    });
}

#[test]
fn c8_a_lower_weight_against_a_choice_by_kept_terms() {
    explore("a lower weight against kept terms", 3, || {
        let scene = loaded([0, 1]);
        races_with_kept_terms(&scene, 0, |s| s.set_weight(0, 0.125));
    });
}

#[test]
fn c8_an_engine_is_added_against_a_choice_by_kept_terms() {
    explore("add against kept terms", 3, || {
        let scene = loaded([0, 2]);
        scene.remove(0);
        races_with_kept_terms(&scene, 1, |s| s.add(0, 8.0));
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
        races(&scene, 1, |scene| scene.up(0), route);
    });
}

/// A process dies while it changes the weight of engine 0, and another one changes it then. Before that a request
/// may go to engine `former`; once it has returned, this engine gets none. In between no lane keeps terms. Lane 1 has
/// those of before the death, if it has not chosen since.
fn dies_in_a_change(
    accesses: usize,
    counts: [usize; 2],
    former: usize,
    [dying, healing]: [f32; 2],
    has_chosen_since: bool,
) -> bool {
    let scene = loaded(counts);
    scene.choose_by(By::Count, 1, 0);
    let died = live_for(accesses, || scene.set_weight(0, dying)).is_none();
    if has_chosen_since {
        // By the weight that it has, whether that is another one by now or not.
        let load = (counts[0] + 1) as f32 / scene.rows().limits(0).weight();
        let right = usize::from(load > (counts[1] + 1) as f32);
        assert_eq!(scene.choose_by(By::Count, 1, 0), Some(right));
        let is_changing = scene.rows().hints().is_changing();
        assert_ne!(scene.has_kept_terms(By::Count, 1), is_changing);
    }
    races(
        &scene,
        former,
        move |s| s.set_weight(0, healing),
        route_by_count,
    );
    assert_eq!(scene.choose_by(By::Count, 1, 0), Some(1 - former));
    assert!(scene.has_kept_terms(By::Count, 1));
    died
}

#[test]
fn k1_death_in_a_change_of_limits_that_is_made_again() {
    for has_chosen_since in [false, true] {
        explore_deaths("death in a change of limits", 1, move |accesses| {
            dies_in_a_change(accesses, [4, 1], 1, [8.0, 8.0], has_chosen_since)
        });
    }
}

#[test]
fn k1_death_in_a_change_of_limits_and_another_change_after_it() {
    for has_chosen_since in [false, true] {
        explore_deaths(
            "death in a change of limits, another one",
            1,
            move |accesses| dies_in_a_change(accesses, [0, 2], 0, [8.0, 0.125], has_chosen_since),
        );
    }
}

#[test]
fn c2_two_choices_by_count_take_an_engine_each() {
    two_choices("two choices by count", By::Count, 1.0, 0);
}

#[test]
fn c2_two_choices_by_weight_take_an_engine_each() {
    two_choices("two choices by weight", By::Count, 0.75, 0);
}

#[test]
fn c5_two_choices_by_tokens_take_an_engine_each() {
    two_choices("two choices by tokens", By::Tokens, 1.0, 7);
}

/// Two lanes choose among two idle engines, of which one has this weight and the other has 1.
fn two_choices(name: &str, by: By, weight: f32, tokens: u32) {
    explore(name, 3, move || {
        let scene = loaded([0, 0]);
        scene.set_weight(0, weight);
        for slot in [0, 1] {
            scene.choose_by(by, slot, tokens);
        }
        let route = |slot| scene.with(move |scene: &Scene| scene.route_by(by, slot, tokens));
        let (one, other) = race(route(0), route(1));
        assert_ne!(one, other);
        scene.assert_counts(&[(0, tokens), (1, tokens)]);
    });
}

#[test]
fn k1_death_before_the_tokens_against_a_choice_by_tokens() {
    // The tokens of the dead one's operation lag from then on, until a reap.
    explore_deaths("death before the tokens", 2, |accesses| {
        let scene = loaded([0, 0]);
        let dying = scene
            .with(move |scene: &Scene| live_for(accesses, || scene.route_to(0, 0, 5)).is_none());
        let choose = scene.with(|scene: &Scene| scene.route_by(By::Tokens, 1, 3));
        let (died, chosen) = race(dying, choose);
        let chosen = chosen.expect("both take requests");
        // The first choice may have been made before that operation, the next ones are not.
        let tokens = [0, 1].map(|engine| scene.counted(engine).1);
        let least = usize::from(tokens[1] < tokens[0]);
        assert_eq!(scene.choose_by(By::Tokens, 1, 3), Some(least));
        assert_eq!(scene.route_by(By::Tokens, 1, 0), Some(least));
        scene.dies(0);
        scene.reap();
        scene.assert_counts(&[(chosen, 3), (least, 0)]);
        died
    });
}

#[test]
fn k1_death_before_the_tokens_and_a_choice_after_it() {
    explore_deaths(
        "death before the tokens, a choice after it",
        0,
        |accesses| {
            let scene = loaded([0, 0]);
            assert!(scene.route_to(1, 1, 3));
            let died = live_for(accesses, || scene.route_to(0, 0, 5)).is_none();
            // An operation that has taken effect counts with its tokens, whether they have been written or not.
            let least = usize::from(scene.counted(0).0 == 1);
            assert_eq!(scene.choose_by(By::Tokens, 1, 1), Some(least));
            assert_eq!(scene.route_by(By::Tokens, 1, 0), Some(least));
            died
        },
    );
}
