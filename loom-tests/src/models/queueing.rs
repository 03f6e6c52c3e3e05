//! Q1: no request sleeps beside a free place that it may use.
//!
//! Bounds: a wake-up is lost if a waiter's look and another process's look at the heads each come before what the other
//! one has written. In order of the accesses that takes one switch into the middle of one of them and one back; out of
//! order, as a processor without the fences may do it, it takes none. So two preemptions reach each such scene of two
//! threads, with one left for a third thread, or for a wake-up in the middle of the look that follows another one.

use crate::algorithm::queue::order::EngineSet;
use crate::explore::{explore, race};
use crate::queue_scene::{Frontend, QueueScene};
use loom::thread;
use std::sync::Arc;

/// Has a request that may go to these engines begin to wait, and wait.
fn waits(
    scene: &Arc<QueueScene>,
    mut frontend: Frontend,
    engines: EngineSet,
) -> impl FnOnce() -> Frontend + use<> {
    scene.with(move |scene| {
        let request = scene.enter(frontend.slot, 0, engines, 0).unwrap();
        scene.wait(&mut frontend, &[request]);
        frontend
    })
}

/// Has a frontend that waits look, as it does by itself from time to time.
fn looks(scene: &Arc<QueueScene>, mut frontend: Frontend) -> impl FnOnce() -> Frontend + use<> {
    scene.with(move |scene| {
        scene.look(&mut frontend);
        frontend
    })
}

fn finishes(scene: &Arc<QueueScene>, slot: usize, engine: usize) -> impl FnOnce() + use<> {
    scene.with(move |scene| scene.finish_and_wake(slot, engine))
}

#[test]
fn q1_enqueue_against_finish() {
    explore("enqueue against finish", 3, || {
        let scene = Arc::new(QueueScene::new(1, 1, 2));
        let (holder, waiter) = (scene.holder(), scene.frontend());
        let waits = waits(&scene, waiter, EngineSet::ANY);
        let (waiter, ()) = race(waits, finishes(&scene, holder, 0));
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
    });
}

#[test]
fn q1_enqueue_against_finish_on_another_engine_under_the_tables_cap() {
    explore("enqueue against finish, under the table's cap", 2, || {
        let scene = Arc::new(QueueScene::new(2, 1, 2).with_total(1));
        let (holder, waiter) = (scene.holder(), scene.frontend());
        let waits = waits(&scene, waiter, EngineSet::one(1));
        let (waiter, ()) = race(waits, finishes(&scene, holder, 0));
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert_eq!(all[0].served, [1]);
    });
}

#[test]
fn q1_enqueue_against_a_route_that_is_just_being_placed() {
    // Under a cap of the table it is counted twice for a moment. A request that begins to wait in that moment finds no
    // room, though there is some.
    explore("enqueue against a route under the table's cap", 2, || {
        let scene = Arc::new(QueueScene::new(1, 2, 2).with_total(2));
        let (other, waiter) = (scene.join(), scene.frontend());
        let route = scene.with(move |scene| scene.route_past(other).is_some());
        let (waiter, routed) = race(waits(&scene, waiter, EngineSet::ANY), route);
        let others = if routed { &[0][..] } else { &[] };
        scene.assert_settled(&mut [waiter], others);
    });
}

#[test]
fn q1_two_finishers_and_one_waiter() {
    explore("two finishers and one waiter", 2, || {
        let scene = Arc::new(QueueScene::new(2, 1, 3));
        let (one, other, waiter) = (scene.holder(), scene.holder(), scene.frontend());
        let one = thread::spawn(finishes(&scene, one, 0));
        let waits = waits(&scene, waiter, EngineSet::one(1));
        let (waiter, ()) = race(waits, finishes(&scene, other, 1));
        one.join().unwrap();
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert_eq!(all[0].served, [1]);
    });
}

#[test]
fn q1_a_wakeup_that_is_under_way_is_left_to_its_sender_and_none_is_lost() {
    // Two requests of one frontend, and two that finish: the one may leave the wake-up to the other.
    explore("a wake-up under way", 1, || {
        let scene = Arc::new(QueueScene::new(1, 2, 3));
        let (one, other) = (scene.holder(), scene.holder());
        let mut waiter = scene.frontend();
        let requests = [(); 2].map(|()| scene.enter_any(waiter.slot));
        scene.wait(&mut waiter, &requests);
        let one = thread::spawn(finishes(&scene, one, 0));
        let (waiter, ()) = race(looks(&scene, waiter), finishes(&scene, other, 0));
        one.join().unwrap();
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert_eq!(all[0].served, [0, 0]);
    });
}

#[test]
fn q1_two_places_and_two_waiters() {
    // Both finishes wake the first one, which has to pass a place on.
    explore("two places and two waiters", 2, || {
        let scene = Arc::new(QueueScene::new(1, 2, 4));
        let holders = [scene.holder(), scene.holder()];
        let (first, second) = (scene.in_line(), scene.in_line());
        let finish = scene.with(move |scene| {
            for holder in holders {
                scene.finish_and_wake(holder, 0);
            }
        });
        let (first, ()) = race(looks(&scene, first), finish);
        let mut all = [first, second];
        scene.assert_settled(&mut all, &[]);
        assert!(all.iter().all(Frontend::is_done));
    });
}

#[test]
fn q1_reap_against_enqueue() {
    explore("reap against enqueue", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 2));
        let (dead, waiter) = (scene.holder(), scene.frontend());
        scene.dies(dead);
        let reap = scene.with(QueueScene::reap_and_wake);
        let (waiter, reaped) = race(waits(&scene, waiter, EngineSet::ANY), reap);
        assert_eq!(reaped, 1);
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
    });
}

#[test]
fn q1_reap_of_a_head_against_finish() {
    // The finisher may take the dead one for the first in line, and wake it. Then the reaper sees the place.
    explore("reap of a head against finish", 3, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (dead, waiter) = (scene.in_line(), scene.in_line());
        scene.dies(dead.slot);
        let reap = scene.with(QueueScene::reap_and_wake);
        let (reaped, ()) = race(reap, finishes(&scene, holder, 0));
        assert_eq!(reaped, 1);
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
    });
}

#[test]
fn q1_enqueue_against_an_engine_that_comes_up() {
    explore("enqueue against an engine that comes up", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 1));
        scene.down(0);
        let waiter = scene.frontend();
        let up = scene.with(|scene| scene.up_and_wake(0));
        let (waiter, ()) = race(waits(&scene, waiter, EngineSet::ANY), up);
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
    });
}
