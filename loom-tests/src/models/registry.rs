//! Join, leave and reap against each other.

use crate::explore::explore;
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
            thread::spawn(move || {
                let Ok(()) = scene.registry().leave(leaving, &*scene);
            })
        };
        let reaper = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.reap())
        };
        let Ok(joined) = scene.registry().join(&*scene);
        leaver.join().unwrap();
        reaper.join().unwrap();
        scene.reap();
        scene.assert_counts(&[]);
        // Who has joined holds its slot; the other one is free.
        let other = scene.join();
        assert_ne!(joined, Some(other));
    });
}
