//! Join, leave and reap against each other.
//!
//! Bounds: each is a handful of accesses around one lock; to come in between two of them takes one
//! preemption, and two threads can do so to a third with two.

use crate::algorithm::registry::Locks;
use crate::explore::{explore, race};
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

#[test]
fn k1_join_against_leave_against_reap() {
    explore("join against leave against reap", 2, || {
        let scene = Arc::new(Scene::new(1, 2));
        let leaving = scene.join();
        let dead = scene.join();
        scene.route(dead, 2).unwrap();
        scene.dies(dead);
        let leaver = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.leave(leaving))
        };
        let reaper = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.reap())
        };
        let joined = scene.try_join();
        leaver.join().unwrap();
        reaper.join().unwrap();
        scene.reap();
        scene.assert_counts(&[]);
        // The one that has joined holds its slot; the other slot is free.
        let other = scene.join();
        assert_ne!(joined, Some(other));
    });
}

#[test]
fn k1_two_reapers_return_once_what_one_frontend_held() {
    explore("two reapers", 3, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (dead, survivor) = (scene.join(), scene.join());
        scene.route(dead, 2).unwrap();
        scene.route(survivor, 3).unwrap();
        scene.dies(dead);
        let (one, other) = race(scene.with(Scene::reap), scene.with(Scene::reap));
        assert_eq!(one + other, 1);
        scene.assert_counts(&[(0, 3)]);
        assert_eq!(scene.is_alive(dead), None);
        assert_eq!(scene.is_alive(survivor), Some(true));
    });
}

#[test]
fn k1_a_slot_whose_frontend_has_just_died_is_not_taken_over_with_what_it_held() {
    explore("join against a short life", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let short_life = scene.with(|scene| {
            if let Some(slot) = scene.try_join() {
                scene.route(slot, 2).unwrap();
                scene.dies(slot);
            }
        });
        race(short_life, scene.with(Scene::try_join));
        scene.reap();
        scene.assert_counts(&[]);
    });
}

#[test]
fn k4_who_opens_waits_for_a_reaper() {
    explore("open against a reap", 3, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (dead, survivor) = (scene.join(), scene.join());
        scene.route(dead, 2).unwrap();
        scene.route(survivor, 3).unwrap();
        scene.dies(dead);
        let open = scene.with(move |scene| {
            scene.open();
            scene.assert_counts(&[(0, 3)]);
            assert_eq!(scene.is_alive(dead), None);
        });
        race(scene.with(Scene::reap), open);
    });
}

#[test]
fn k4_who_opens_goes_on_where_a_reaper_has_died() {
    explore("open against a reaper that dies", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let dead = scene.join();
        scene.route(dead, 2).unwrap();
        scene.dies(dead);
        let short_reap = scene.with(move |scene| {
            let Ok(locked) = scene.try_lock(dead);
            if locked {
                scene.dies(dead);
            }
        });
        let open = scene.with(|scene| {
            scene.open();
            scene.assert_counts(&[]);
        });
        race(short_reap, open);
    });
}

#[test]
fn k4_who_opens_does_not_take_a_joiner_for_the_frontend_that_died() {
    explore("open against a joiner that comes too late", 2, || {
        let scene = Arc::new(Scene::new(1, 1));
        let joiner = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.try_join())
        };
        if let Some(slot) = scene.try_join() {
            scene.route(slot, 2).unwrap();
            scene.dies(slot);
            scene.open();
            scene.assert_counts(&[]);
        }
        joiner.join().unwrap();
    });
}

#[test]
fn k2_a_look_takes_none_who_is_reaped_for_alive() {
    explore("a look against a reap", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let dead = scene.join();
        scene.dies(dead);
        let look = scene.with(move |scene| scene.is_alive(dead));
        let (_, alive) = race(scene.with(Scene::reap), look);
        assert_ne!(alive, Some(true));
    });
}

#[test]
fn k2_a_look_takes_none_who_leaves_or_joins_for_dead() {
    explore("a look against leave and join", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        let slot = scene.join();
        let change = scene.with(move |scene| {
            scene.leave(slot);
            scene.join();
        });
        let look = scene.with(move |scene| scene.is_alive(slot));
        let (_, alive) = race(change, look);
        assert_ne!(alive, Some(false));
    });
}

#[test]
fn k1_two_joiners_get_two_slots() {
    explore("two joiners", 3, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (one, other) = race(scene.with(Scene::try_join), scene.with(Scene::try_join));
        assert_ne!(one, other);
        assert!(one.is_some() && other.is_some());
        assert_eq!(scene.try_join(), None);
    });
}
