//! K1: a lane dies in an operation whose only evidence is another lane's witness, and that witness has
//! to make room, or is old.
//!
//! Bounds: what comes before and after the race is fixed, since how operations interleave is shown in
//! the other models. Two preemptions let one side come in between any two accesses of the other, and
//! go on once more.

use crate::algorithm::primitive::Ordering::Relaxed;
use crate::death::live_for;
use crate::explore::{explore_deaths, race};
use crate::scene::Scene;
use std::sync::Arc;

/// A table of one engine, on which a frontend dies in a route after so many accesses, while another
/// routes. Both have been at it before.
struct Aftermath {
    scene: Arc<Scene>,
    dead: usize,
    survivor: usize,
    third: usize,
    died: bool,
}

impl Aftermath {
    fn of_a_death(accesses: usize) -> Self {
        let scene = Arc::new(Scene::new(1, 3));
        let [dead, survivor, third] = [scene.join(), scene.join(), scene.join()];
        let victim = move |scene: &Scene| live_for(accesses, || scene.route(dead, 0)).is_none();
        let route = move |scene: &Scene| scene.route(survivor, 0);
        let (died, _) = race(scene.with(victim), scene.with(route));
        scene.dies(dead);
        Self {
            scene,
            dead,
            survivor,
            third,
            died,
        }
    }

    fn route(&self, slot: usize) {
        self.scene.route(slot, 0).expect("there is no cap");
    }

    /// The counts are those of so many living permits.
    fn ends_with(self, permits: usize) -> bool {
        self.scene.reap();
        self.scene.assert_counts(&vec![(0, 0); permits]);
        assert_eq!(self.scene.ledger(self.dead, 0).requests(), 0);
        self.died
    }
}

#[test]
fn k1_death_whose_witness_makes_room_for_another() {
    explore_deaths("death, and the witness makes room", 3, |accesses| {
        let after = Aftermath::of_a_death(accesses);
        // The third overwrites the survivor's word, and that one the third's.
        after.route(after.third);
        after.route(after.survivor);
        after.ends_with(3)
    });
}

#[test]
fn k1_death_whose_witness_makes_room_during_the_reap() {
    explore_deaths(
        "death, and the witness makes room in a reap",
        2,
        |accesses| {
            let after = Aftermath::of_a_death(accesses);
            after.route(after.third);
            let survivor = after.survivor;
            let route = move |scene: &Scene| scene.route(survivor, 0);
            race(after.scene.with(Scene::reap), after.scene.with(route));
            after.ends_with(3)
        },
    );
}

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

#[test]
fn k1_a_witness_makes_room_while_its_lane_goes_on() {
    explore_deaths("death after a witness made room", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 3));
        let [victim, survivor, third] = [scene.join(), scene.join(), scene.join()];
        let life = move |scene: &Scene| {
            let life = || {
                scene.route(victim, 0);
                scene.finish(victim, 0, 0);
            };
            live_for(accesses, life).is_none()
        };
        let routes = move |scene: &Scene| {
            for slot in [survivor, third, survivor] {
                scene.route(slot, 0);
            }
        };
        let (died, ()) = race(scene.with(life), scene.with(routes));
        scene.dies(victim);
        scene.reap();
        scene.assert_counts(&[(0, 0); 3]);
        died
    });
}

/// A turn of the tags, and half of one.
const TURN: u64 = 1 << 29;
const HALF: u64 = TURN / 2;

/// Brings a lane from operation `from` to `to` without work on engine 0. Only the operations with
/// which an era ends are performed, on engine 1; the others would leave nothing behind.
fn work_elsewhere(scene: &Scene, slot: usize, from: u64, to: u64) {
    let lane = scene.lane(slot);
    for era in (from / HALF + 1)..=(to / HALF) {
        lane.skip_to(era * HALF - 1);
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
        // Nobody sleeps: the word has stood there for so long.
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
fn k1_death_of_a_lane_that_was_not_used_for_long() {
    explore_deaths(
        "death of a lane that was not used for long",
        0,
        |accesses| {
            let scene = Arc::new(Scene::new(1, 2));
            // Other lanes have ended half of the eras that can be told apart.
            scene.counter().eras.store(1 << 22, Relaxed);
            let [victim, survivor] = [scene.join(), scene.join()];
            let died = live_for(accesses, || scene.route(victim, 0)).is_none();
            scene.route(survivor, 0);
            scene.dies(victim);
            scene.reap();
            scene.assert_counts(&[(0, 0)]);
            died
        },
    );
}

#[test]
fn k1_death_long_after_a_witness() {
    death_long_after_a_witness("death long after a witness", false);
}

#[test]
fn k1_death_long_after_a_witness_that_makes_room() {
    death_long_after_a_witness("death long after a witness that makes room", true);
}

/// Enough operations for narrow tags to come round: the witness names the tag of the operation in
/// which its lane dies.
fn death_long_after_a_witness(name: &str, makes_room: bool) {
    explore_deaths(name, 0, move |accesses| {
        let scene = Arc::new(Scene::new(1, 3));
        let [victim, survivor, third] = [scene.join(), scene.join(), scene.join()];
        for slot in [victim, survivor, third] {
            scene.route(slot, 0);
        }
        let life = || {
            for _ in 0..3 {
                scene.finish(victim, 0, 0);
                scene.route(victim, 0);
            }
        };
        let died = live_for(accesses, life).is_none();
        scene.dies(victim);
        let mut permits = vec![(0, 0); 2];
        if makes_room {
            scene.route(third, 0);
            scene.route(survivor, 0);
            permits.extend([(0, 0); 2]);
        }
        scene.reap();
        scene.assert_counts(&permits);
        died
    });
}
