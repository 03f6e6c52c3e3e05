//! K1: a lane that stops for ever after its k-th access, for every k, while another goes on; and a
//! reaper that stops after its j-th access, for every j.
//!
//! Bounds: a death needs no preemption, since a dead thread ends. Two or three are left for the
//! survivor to come in between any two accesses of the victim, to help in the middle of an
//! operation, and to be overtaken once more while it helps.

use crate::algorithm::word::Amount;
use crate::death::live_for;
use crate::explore::{explore_deaths, explore_two_deaths, race};
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

type Permits = Vec<(usize, u32)>;

/// Lets `victim` die after so many accesses while `survivor` goes on with the same engines. Returns
/// the permits of the survivor, and whether the victim died.
fn die(
    scene: &Arc<Scene>,
    slots: (usize, usize),
    accesses: usize,
    victim: impl Fn(&Scene, usize) + 'static,
    survivor: impl Fn(&Scene, usize) -> Permits + 'static,
) -> (Permits, bool) {
    let dying = scene.with(move |scene| live_for(accesses, || victim(scene, slots.0)).is_none());
    let living = scene.with(move |scene| survivor(scene, slots.1));
    let (died, permits) = race(dying, living);
    scene.dies(slots.0);
    (permits, died)
}

/// The same in fewer scenes, for models that have more than this to interleave: the survivor is the
/// thread that has started the victim, so it comes first more often than not.
fn die_beside(
    scene: &Arc<Scene>,
    slots: (usize, usize),
    accesses: usize,
    victim: impl Fn(&Scene, usize) + 'static,
    survivor: impl Fn(&Scene, usize) -> Permits,
) -> (Permits, bool) {
    let dying = scene.with(move |scene| live_for(accesses, || victim(scene, slots.0)).is_none());
    let dying = thread::spawn(dying);
    let permits = survivor(scene, slots.1);
    let died = dying.join().unwrap();
    scene.dies(slots.0);
    (permits, died)
}

/// The same, with a reap after it, and a look at everything.
fn die_and_reap(
    scene: Scene,
    accesses: usize,
    before: impl Fn(&Scene, usize),
    victim: impl Fn(&Scene, usize) + 'static,
    survivor: impl Fn(&Scene, usize) -> Permits + 'static,
) -> bool {
    let scene = Arc::new(scene);
    let slots = (scene.join(), scene.join());
    before(&scene, slots.0);
    let (permits, died) = die(&scene, slots, accesses, victim, survivor);
    scene.reap();
    assert_as_good_as_new(&scene, slots.0, &permits);
    died
}

/// The counts are those of the survivor, and the dead one's slot and lane can be used again.
fn assert_as_good_as_new(scene: &Scene, slot: usize, permits: &Permits) {
    scene.assert_counts(permits);
    assert_eq!(scene.ledger(slot, 0).requests(), 0);
    let again = scene.join();
    assert_eq!(again, slot);
    let engine = scene.route(again, 1).unwrap();
    scene.finish(again, engine, 1);
    scene.assert_counts(permits);
}

fn nothing(_: &Scene, _: usize) {}

fn route_and_finish(scene: &Scene, slot: usize) -> Permits {
    let permit = scene.route(slot, 0).unwrap();
    scene.finish(slot, permit, 0);
    vec![]
}

fn route(scene: &Scene, slot: usize) -> Permits {
    vec![(scene.route(slot, 0).unwrap(), 0)]
}

fn route_with_tokens(scene: &Scene, slot: usize) -> Permits {
    vec![(scene.route(slot, 3).unwrap(), 3)]
}

#[test]
fn k1_death_in_route() {
    explore_deaths("death in route", 3, |accesses| {
        let victim = |scene: &Scene, slot| _ = scene.route(slot, 0);
        die_and_reap(
            Scene::new(1, 2),
            accesses,
            nothing,
            victim,
            route_and_finish,
        )
    });
}

#[test]
fn k1_death_in_finish() {
    explore_deaths("death in finish", 3, |accesses| {
        let before = |scene: &Scene, slot| _ = scene.route(slot, 0);
        let victim = |scene: &Scene, slot| scene.finish(slot, 0, 0);
        die_and_reap(Scene::new(1, 2), accesses, before, victim, route_and_finish)
    });
}

#[test]
fn k1_death_in_route_with_tokens() {
    explore_deaths("death in route with tokens", 3, |accesses| {
        let victim = |scene: &Scene, slot| _ = scene.route(slot, 5);
        die_and_reap(
            Scene::new(1, 2),
            accesses,
            nothing,
            victim,
            route_with_tokens,
        )
    });
}

#[test]
fn k1_death_in_finish_with_tokens() {
    explore_deaths("death in finish with tokens", 3, |accesses| {
        let before = |scene: &Scene, slot| _ = scene.route(slot, 5);
        let victim = |scene: &Scene, slot| scene.finish(slot, 0, 5);
        die_and_reap(
            Scene::new(1, 2),
            accesses,
            before,
            victim,
            route_with_tokens,
        )
    });
}

#[test]
fn k1_death_in_one_of_several_operations() {
    // As in `route_many`, which is that many routes: the lane has a past when it dies.
    explore_deaths("death in route_many", 2, |accesses| {
        let victim = |scene: &Scene, slot| {
            for _ in 0..3 {
                scene.route(slot, 5);
            }
        };
        die_and_reap(
            Scene::new(2, 2),
            accesses,
            nothing,
            victim,
            route_with_tokens,
        )
    });
}

#[test]
fn k1_death_under_the_tables_cap() {
    // Two rows are changed, one after the other. How the changes of one row interleave with others'
    // is shown above, so here the survivor goes on after the death. Until the reap, a request that was
    // counted on its engine and is still being placed has two places.
    explore_deaths("death under the table's cap", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 2).with_total(3));
        let slots = (scene.join(), scene.join());
        let victim = |scene: &Scene, slot| {
            let permit = scene.route(slot, 5).unwrap();
            scene.finish(slot, permit, 5);
            scene.route(slot, 5);
        };
        let (_, died) = die(&scene, slots, accesses, victim, |_, _| vec![]);
        let permits = route_with_tokens(&scene, slots.1);
        scene.reap();
        assert_as_good_as_new(&scene, slots.0, &permits);
        died
    });
}

#[test]
fn k1_death_after_an_operation_that_is_helped() {
    // The helper may see the number of the second operation beside the intent and the word of the
    // first.
    explore_deaths("death after an operation that is helped", 2, |accesses| {
        let victim = |scene: &Scene, slot| {
            scene.route(slot, 5);
            scene.route(slot, 0);
        };
        die_and_reap(Scene::new(1, 2), accesses, nothing, victim, route)
    });
}

#[test]
fn k1_death_after_many_operations_with_a_late_helper() {
    // A helper may sleep through all of them. The first one has tokens, or none would help.
    explore_deaths("death after many operations", 1, |accesses| {
        let before = |scene: &Scene, slot| _ = scene.route(slot, 5);
        let victim = |scene: &Scene, slot| {
            for _ in 0..2 {
                scene.route(slot, 0);
                scene.finish(slot, 0, 0);
            }
        };
        die_and_reap(Scene::new(1, 2), accesses, before, victim, route)
    });
}

#[test]
fn k1_death_with_two_helpers_of_different_operations() {
    // One helper may be late with an earlier operation when the other has confirmed the last one.
    explore_deaths("death with two helpers", 1, |accesses| {
        let scene = Arc::new(Scene::new(1, 3));
        let slots = (scene.join(), scene.join());
        let third = scene.join();
        let helper = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || route(&scene, third))
        };
        let victim = |scene: &Scene, slot| {
            scene.route(slot, 5);
            scene.route(slot, 5);
        };
        let (mut permits, died) = die_beside(&scene, slots, accesses, victim, route);
        permits.extend(helper.join().unwrap());
        scene.reap();
        assert_as_good_as_new(&scene, slots.0, &permits);
        died
    });
}

#[test]
fn k1_death_in_an_operation_of_which_another_lane_is_shown_the_word_late() {
    death_and_a_late_choice("death, and a late choice of its word", false);
}

#[test]
fn k1_death_in_an_operation_after_one_of_which_another_lane_is_shown_the_word_late() {
    death_and_a_late_choice("death, and a late choice of the word before", true);
}

/// A choice is made before its lane is entered, as for a policy of the user's own, and that lane overwrites
/// the word of a dead lane meanwhile, by which the choice was made, or the word before.
fn death_and_a_late_choice(name: &str, by_the_word_before: bool) {
    explore_deaths(name, 0, move |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let (dead, survivor) = (scene.join(), scene.join());
        let rows = scene.rows();
        let choose = || scene.choice(0);
        scene.route(dead, 0);
        let first = choose();
        let died = live_for(accesses, || scene.route(dead, 0)).is_none();
        let second = choose();
        scene.route(survivor, 0);
        let choice = if by_the_word_before { first } else { second };
        let lane = scene.registry().lane(survivor, 0);
        let placed = rows.place_chosen(lane, Amount::request(0), choice);
        assert!(placed.is_err(), "its word was overwritten");
        scene.dies(dead);
        scene.reap();
        scene.assert_counts(&[(0, 0)]);
        died
    });
}

#[test]
fn k1_death_in_a_change_of_state() {
    use crate::algorithm::word::RowState;
    explore_deaths("death in a change of state", 3, |accesses| {
        let victim = |scene: &Scene, _| {
            scene.rewrite(0, RowState::Draining);
            scene.rewrite(0, RowState::Active);
        };
        let survivor = |scene: &Scene, slot| match scene.route(slot, 3) {
            Some(engine) => vec![(engine, 3)],
            None => vec![],
        };
        let scene = Arc::new(Scene::new(1, 2));
        let slots = (scene.join(), scene.join());
        let (permits, died) = die(&scene, slots, accesses, victim, survivor);
        scene.rewrite(0, RowState::Active);
        scene.reap();
        assert_as_good_as_new(&scene, slots.0, &permits);
        died
    });
}

#[test]
fn k1_death_of_the_reaper() {
    // Two permits with tokens to take back, and another process that goes on with the same engine.
    explore_deaths("death of the reaper", 3, |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let (dead, survivor) = (scene.join(), scene.join());
        scene.route(dead, 5);
        scene.route(dead, 5);
        scene.dies(dead);
        let reaper = scene.with(move |scene| live_for(accesses, || scene.reap()).is_none());
        let route = scene.with(move |scene| route_with_tokens(scene, survivor));
        let (died, permits) = race(reaper, route);
        scene.only_these_live(&[survivor]);
        scene.reap();
        assert_as_good_as_new(&scene, dead, &permits);
        died
    });
}

#[test]
fn k1_death_in_route_and_then_of_the_reaper() {
    explore_two_deaths("death in route, then of the reaper", 1, |first, second| {
        let scene = Arc::new(Scene::new(1, 2));
        let slots = (scene.join(), scene.join());
        let victim = |scene: &Scene, slot| _ = scene.route(slot, 5);
        let (mut permits, died) = die_beside(&scene, slots, first, victim, route_with_tokens);
        let reaper = scene.with(move |scene| live_for(second, || scene.reap()).is_none());
        let reaper = thread::spawn(reaper);
        permits.extend(route_with_tokens(&scene, slots.1));
        let reaper_died = reaper.join().unwrap();
        scene.only_these_live(&[slots.1]);
        scene.reap();
        assert_as_good_as_new(&scene, slots.0, &permits);
        [died, reaper_died]
    });
}

#[test]
fn k1_death_in_route_and_a_reap_against_those_who_go_on() {
    explore_deaths("death in route, a reap while others go on", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let slots = (scene.join(), scene.join());
        let (_, died) = die(
            &scene,
            slots,
            accesses,
            |scene, slot| drop(route_with_tokens(scene, slot)),
            |_, _| vec![],
        );
        let other = scene.with(move |scene| {
            scene.route(slots.1, 3).unwrap();
            scene.counted(0)
        });
        let (_, (requests, tokens)) = race(scene.with(Scene::reap), other);
        assert_eq!(tokens, 3 * requests, "each request has three tokens");
        assert_as_good_as_new(&scene, slots.0, &vec![(0, 3)]);
        died
    });
}

#[test]
fn k1_death_in_join_and_in_leave() {
    explore_deaths("death in join and leave", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let survivor = scene.join();
        let life = scene.with(|scene| {
            let slot = scene.join();
            let permit = scene.route(slot, 0).unwrap();
            scene.finish(slot, permit, 0);
            scene.leave(slot);
        });
        let route = scene.with(move |scene| route_with_tokens(scene, survivor));
        let (died, permits) = race(move || live_for(accesses, life).is_none(), route);
        scene.only_these_live(&[survivor]);
        scene.reap();
        assert_as_good_as_new(&scene, 1 - survivor, &permits);
        died
    });
}
