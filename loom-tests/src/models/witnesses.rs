//! K1: a lane dies in an operation whose only evidence is another lane's witness, and that witness has
//! to be told from those of other operations of that lane, or is swept.
//!
//! Bounds: what comes before and after the race is fixed, since how operations interleave is shown in
//! the other models. Two preemptions let one side come in between any two accesses of the other, and
//! go on once more.

use crate::algorithm::word::{RowState, TURN};
use crate::death::live_for;
use crate::explore::{explore_deaths, race};
use crate::scene::Scene;
use std::sync::Arc;

/// After so many operations a lane sweeps.
const QUARTER: u64 = TURN / 4;

#[test]
fn k1_death_whose_word_is_overwritten_during_the_reap() {
    explore_deaths(
        "death, and a reap while its word is overwritten",
        2,
        |accesses| {
            let scene = Arc::new(Scene::new(1, 2));
            let [dead, survivor] = [scene.join(), scene.join()];
            let died = live_for(accesses, || scene.route(dead, 0)).is_none();
            scene.dies(dead);
            let route = move |scene: &Scene| scene.route(survivor, 0);
            race(scene.with(Scene::reap), scene.with(route));
            scene.reap();
            scene.assert_counts(&[(0, 0)]);
            died
        },
    );
}

/// Brings a lane from operation `from` to `to` without work on engine 0. Only the operations before which
/// it sweeps are performed, on engine 1; the others would leave nothing behind.
fn work_elsewhere(scene: &Scene, slot: usize, from: u64, to: u64) {
    let lane = scene.lane(slot);
    for quarter in (from / QUARTER + 1)..=(to / QUARTER) {
        lane.skip_to(quarter * QUARTER - 1);
        scene.route_to(1, slot, 0);
    }
    lane.skip_to(to);
}

#[test]
fn k1_death_a_turn_after_an_operation_that_is_witnessed_late() {
    explore_deaths("death a turn after the word was written", 0, |accesses| {
        let scene = Arc::new(Scene::new(2, 2));
        let [victim, survivor] = [scene.join(), scene.join()];
        scene.route_to(0, victim, 0); // operation 1
        work_elsewhere(&scene, victim, 1, TURN);
        // Neither sleeps: the word has stood there for so long.
        scene.route_to(0, survivor, 0);
        // Operation TURN + 1, with the tag of operation 1.
        let died = live_for(accesses, || scene.route_to(0, victim, 0)).is_none();
        scene.dies(victim);
        scene.reap();
        assert_eq!(scene.counted(0), (1, 0));
        died
    });
}

#[test]
fn k1_death_a_turn_after_an_operation_that_is_helped_late() {
    // The helper sleeps after it has loaded the word of operation 1, and wakes beside operation TURN + 1.
    explore_deaths("death a turn after, and a late helper", 1, |accesses| {
        let scene = Arc::new(Scene::new(2, 2));
        let [victim, helper] = [scene.join(), scene.join()];
        scene.route_to(0, victim, 5);
        let life = move |scene: &Scene| {
            work_elsewhere(scene, victim, 1, TURN);
            live_for(accesses, || scene.route_to(0, victim, 0)).is_none()
        };
        let route = move |scene: &Scene| _ = scene.route_to(0, helper, 0);
        let (died, ()) = race(scene.with(life), scene.with(route));
        scene.dies(victim);
        scene.reap();
        scene.assert_counts(&[(0, 0)]);
        died
    });
}

#[test]
fn k1_death_of_a_lane_of_which_two_rows_tell() {
    // The row of its last operation is overwritten first, then that of the one before, for which two compete.
    explore_deaths("death, and two rows tell", 2, |accesses| {
        let scene = Arc::new(Scene::new(2, 3));
        let [victim, survivor, third] = [scene.join(), scene.join(), scene.join()];
        scene.route_to(0, victim, 0);
        let died = live_for(accesses, || scene.route_to(1, victim, 0)).is_none();
        let routes = move |scene: &Scene| {
            for engine in [1, 0] {
                scene.route_to(engine, survivor, 0);
            }
        };
        let competes = move |scene: &Scene| scene.route_to(0, third, 0);
        race(scene.with(routes), scene.with(competes));
        scene.dies(victim);
        scene.reap();
        scene.assert_counts(&[(0, 0), (0, 0), (1, 0)]);
        died
    });
}

/// A lane that has written the word of engine 0 and sweeps before its next operation, which is on engine 0
/// again, and dies; while another acts.
fn death_at_a_sweep(
    name: &str,
    preemptions: usize,
    act: fn(&Scene, usize),
    permits: &'static [(usize, u32)],
) {
    explore_deaths(name, preemptions, move |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let [victim, survivor] = [scene.join(), scene.join()];
        scene.route(victim, 0);
        scene.lane(victim).skip_to(QUARTER - 1);
        let life = move |scene: &Scene| live_for(accesses, || scene.finish(victim, 0, 0)).is_none();
        let other = move |scene: &Scene| act(scene, survivor);
        let (died, ()) = race(scene.with(life), scene.with(other));
        scene.dies(victim);
        scene.reap();
        scene.assert_counts(permits);
        assert_eq!(scene.ledger(victim, 0).requests(), 0);
        died
    });
}

#[test]
fn k1_death_at_a_sweep_against_an_overwriter() {
    let routes = |scene: &Scene, slot| {
        scene.route(slot, 0);
        scene.route(slot, 0);
    };
    death_at_a_sweep(
        "death at a sweep, and an overwriter",
        2,
        routes,
        &[(0, 0), (0, 0)],
    );
}

#[test]
fn k1_death_at_a_sweep_against_a_change_of_state() {
    let rewrites = |scene: &Scene, _| {
        scene.rewrite(0, RowState::Draining);
        scene.rewrite(0, RowState::Active);
    };
    death_at_a_sweep("death at a sweep, and a change of state", 2, rewrites, &[]);
}

#[test]
fn k1_death_of_a_reaper_at_a_sweep() {
    explore_deaths("death of a reaper at a sweep", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 2));
        let [dead, survivor] = [scene.join(), scene.join()];
        scene.route(dead, 0);
        scene.lane(dead).skip_to(QUARTER - 1);
        scene.dies(dead);
        let reaper = scene.with(move |scene| live_for(accesses, || scene.reap()).is_none());
        let route = scene.with(move |scene| _ = scene.route(survivor, 0));
        let (died, ()) = race(reaper, route);
        scene.only_these_live(&[survivor]);
        scene.reap();
        scene.assert_counts(&[(0, 0)]);
        assert_eq!(scene.ledger(dead, 0).requests(), 0);
        died
    });
}

/// A lane is between any two accesses of a route while another goes on for so many operations, of which the
/// last two are on the same engine, and dies in the last one. The first one wakes, and routes once more.
fn death_after_a_sleep(name: &str, preemptions: usize, operations: u64) {
    explore_deaths(name, preemptions, move |accesses| {
        let scene = Arc::new(Scene::new(2, 2));
        let [victim, sleeper] = [scene.join(), scene.join()];
        scene.route_to(0, victim, 0);
        let life = move |scene: &Scene| {
            work_elsewhere(scene, victim, 1, operations);
            live_for(accesses, || scene.route_to(0, victim, 0)).is_none()
        };
        let routes = move |scene: &Scene| {
            scene.route_to(0, sleeper, 0);
            scene.route_to(0, sleeper, 0);
        };
        let (died, ()) = race(scene.with(life), scene.with(routes));
        scene.dies(victim);
        scene.reap();
        scene.assert_counts(&[(0, 0); 2]);
        died
    });
}

#[test]
fn k1_death_after_another_lane_slept_half_a_turn() {
    death_after_a_sleep("death, and a sleep of a half", 2, 2 * QUARTER + 1);
}

#[test]
fn k1_death_after_another_lane_slept_a_turn_and_a_half() {
    death_after_a_sleep(
        "death, and a sleep of a turn and a half",
        1,
        6 * QUARTER + 1,
    );
}

#[test]
fn k1_death_long_after_a_witness() {
    // The witness would seem to be of a later operation.
    death_long_after("death long after a witness", 3 * QUARTER);
}

#[test]
fn k1_death_a_turn_after_a_witness() {
    // The witness would seem to be of the operation in which its lane dies.
    death_long_after("death a turn after a witness", TURN);
}

fn death_long_after(name: &str, operations: u64) {
    explore_deaths(name, 0, move |accesses| {
        let scene = Arc::new(Scene::new(2, 2));
        let [victim, survivor] = [scene.join(), scene.join()];
        for slot in [victim, survivor] {
            scene.route_to(0, slot, 0);
        }
        work_elsewhere(&scene, victim, 1, operations);
        let died = live_for(accesses, || scene.route_to(0, victim, 0)).is_none();
        scene.dies(victim);
        scene.route_to(0, survivor, 0);
        scene.reap();
        scene.assert_counts(&[(0, 0); 2]);
        died
    });
}
