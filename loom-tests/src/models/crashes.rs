//! K1: a lane that stops for ever after its k-th access, for every k, while another goes on.

use crate::death::live_for;
use crate::explore::explore_deaths;
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

/// Lets `victim` die after so many accesses while `survivor` goes on with the same engines; then reaps,
/// and compares the counts with the permits that the survivor holds. Returns whether the victim died.
fn die(
    scene: Scene,
    accesses: usize,
    before: impl Fn(&Scene, usize),
    victim: impl Fn(&Scene, usize) + Send + 'static,
    survivor: impl Fn(&Scene, usize) -> Vec<(usize, u32)>,
) -> bool {
    let scene = Arc::new(scene);
    let (a, b) = (scene.join(), scene.join());
    before(&scene, a);
    let dying = {
        let scene = Arc::clone(&scene);
        thread::spawn(move || live_for(accesses, || victim(&scene, a)).is_none())
    };
    let permits = survivor(&scene, b);
    let died = dying.join().unwrap();
    scene.dies(a);
    scene.reap();
    scene.assert_counts(&permits);
    assert_eq!(scene.held(a, 0).requests(), 0);
    // The lane is as good as new.
    let again = scene.join();
    assert_eq!(again, a);
    let engine = scene.route(again, 1).unwrap();
    scene.finish(again, engine, 1);
    scene.assert_counts(&permits);
    died
}

fn nothing(_: &Scene, _: usize) {}

fn route_and_finish(scene: &Scene, slot: usize) -> Vec<(usize, u32)> {
    let permit = scene.route(slot, 0).unwrap();
    scene.finish(slot, permit, 0);
    vec![]
}

fn route_with_tokens(scene: &Scene, slot: usize) -> Vec<(usize, u32)> {
    vec![(scene.route(slot, 3).unwrap(), 3)]
}

#[test]
fn k1_death_in_route() {
    explore_deaths("death in route", 3, |accesses| {
        let victim = |scene: &Scene, slot| _ = scene.route(slot, 0);
        die(
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
        die(Scene::new(1, 2), accesses, before, victim, route_and_finish)
    });
}

#[test]
fn k1_death_in_route_with_tokens() {
    explore_deaths("death in route with tokens", 3, |accesses| {
        let victim = |scene: &Scene, slot| _ = scene.route(slot, 5);
        die(
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
        die(
            Scene::new(1, 2),
            accesses,
            before,
            victim,
            route_with_tokens,
        )
    });
}
