//! Q4: a process that waits, is woken, wakes others, gives up or reaps, and dies after its k-th access, for every k.
//! Those that live get its place when they look by themselves, and what it had counted is returned.
//!
//! Bounds: a death needs no preemption. One or two are left for a survivor to come in between two accesses of the
//! victim; how looks and wake-ups interleave when all live is shown in `queueing`.

use crate::algorithm::queue::order::EngineSet;
use crate::death::live_for;
use crate::explore::{explore, explore_deaths, race};
use crate::queue_scene::{Frontend, QueueScene};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has a frontend act that may die of it, while another one looks. Returns the frontend if it lives.
fn die_beside(
    scene: &Arc<QueueScene>,
    accesses: usize,
    mut victim: Frontend,
    act: impl FnOnce(&QueueScene, &mut Frontend) + 'static,
    mut other: Frontend,
) -> (Option<Frontend>, Frontend) {
    let slot = victim.slot;
    let dying = scene.with(move |scene| {
        let lived = live_for(accesses, || act(scene, &mut victim));
        lived.map(|()| victim)
    });
    let looking = scene.with(move |scene| {
        scene.look(&mut other);
        other
    });
    let (victim, other) = race(dying, looking);
    if victim.is_none() {
        scene.dies(slot);
    }
    (victim, other)
}

#[test]
fn q4_death_of_the_head_after_the_wakeup() {
    explore_deaths("death of the head after the wake-up", 2, |accesses| {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (first, second) = (scene.in_line(), scene.in_line());
        scene.finish_and_wake(holder, 0);
        let (first, mut second) = die_beside(&scene, accesses, first, QueueScene::look, second);
        if first.is_none() {
            scene.look_later(&mut second);
            assert!(second.is_done(), "the next one has the place");
            scene.reap_and_wake();
        }
        let died = first.is_none();
        let mut all: Vec<_> = first.into_iter().chain([second]).collect();
        scene.assert_settled(&mut all, &[]);
        died
    });
}

#[test]
fn q4_death_of_the_finisher() {
    // Between freeing the place and waking, and anywhere else.
    explore_deaths("death of the finisher", 2, |accesses| {
        let scene = Arc::new(QueueScene::new(1, 1, 2));
        let (holder, mut waiter) = (scene.holder(), scene.in_line());
        let finish = scene
            .with(move |scene| live_for(accesses, || scene.finish_and_wake(holder, 0)).is_none());
        let look = scene.with(move |scene| {
            scene.look(&mut waiter);
            waiter
        });
        let (died, mut waiter) = race(finish, look);
        if died {
            scene.dies(holder);
            scene.look_later(&mut waiter);
            assert!(waiter.is_done());
            scene.reap_and_wake();
        }
        scene.assert_settled(&mut [waiter], &[]);
        died
    });
}

#[test]
fn q4_death_while_a_request_begins_to_wait() {
    explore_deaths("death in enter", 1, |accesses| {
        let scene = Arc::new(QueueScene::new(1, 1, 3).with_bounds(2, 0));
        let (holder, mut victim, mut other) = (scene.holder(), scene.frontend(), scene.frontend());
        let slot = victim.slot;
        let dying = scene.with(move |scene| {
            live_for(accesses, || {
                let request = scene.enter_any(victim.slot);
                scene.wait(&mut victim, &[request]);
                victim
            })
        });
        let waits = scene.with(move |scene| {
            let request = scene.enter_any(other.slot);
            scene.wait(&mut other, &[request]);
            other
        });
        let (victim, mut other) = race(dying, waits);
        let died = victim.is_none();
        if died {
            scene.dies(slot);
            scene.finish_and_wake(holder, 0);
            scene.look_later(&mut other);
            assert!(other.is_done(), "one that is dead is in the way");
            scene.reap_and_wake();
            // Nothing of the dead one is left: two more can wait.
            let engine = other.served.remove(0);
            let again = [(); 2].map(|()| scene.enter(other.slot, 0, EngineSet::ANY, 0));
            assert!(again.iter().all(Result::is_ok), "{again:?}");
            for _ in again {
                scene.leave_queue(other.slot, 0);
            }
            scene.finish_and_wake(other.slot, engine);
            scene.assert_settled(&mut [other], &[]);
            return true;
        }
        let mut all: Vec<_> = victim.into_iter().chain([other]).collect();
        scene.assert_settled(&mut all, &[0]);
        false
    });
}

#[test]
fn q4_death_while_a_request_gives_up() {
    explore_deaths("death in giving up", 2, |accesses| {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (first, second) = (scene.in_line(), scene.in_line());
        scene.finish_and_wake(holder, 0);
        let give_up = |scene: &QueueScene, frontend: &mut Frontend| {
            scene.give_up(frontend);
        };
        let (first, mut second) = die_beside(&scene, accesses, first, give_up, second);
        let died = first.is_none();
        if died {
            scene.look_later(&mut second);
            scene.reap_and_wake();
        }
        let mut all = [second];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
        died
    });
}

#[test]
fn q4_death_of_the_reaper_of_one_that_came_first() {
    explore_deaths("death of the reaper of a head", 2, |accesses| {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (first, mut second) = (scene.in_line(), scene.in_line());
        scene.finish_and_wake(holder, 0);
        scene.dies(first.slot);
        let reap = scene.with(move |scene| live_for(accesses, || scene.reap_and_wake()).is_none());
        let look = scene.with(move |scene| {
            scene.look(&mut second);
            second
        });
        let (died, mut second) = race(reap, look);
        if died {
            scene.only_these_live(&[holder, second.slot]);
            scene.look_later(&mut second);
        }
        scene.reap_and_wake();
        let mut all = [second];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
        died
    });
}

#[test]
fn q4_two_dead_ones_that_come_first_do_not_keep_the_third_from_its_place() {
    explore("two dead ones in line", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 4));
        let holder = scene.holder();
        let (first, second, mut third) = (scene.in_line(), scene.in_line(), scene.in_line());
        [first, second]
            .iter()
            .for_each(|dead| scene.dies(dead.slot));
        let look = scene.with(move |scene| {
            scene.look(&mut third);
            third
        });
        let finish = scene.with(move |scene| scene.finish_and_wake(holder, 0));
        let (mut third, ()) = race(look, finish);
        assert!(!third.is_done());
        scene.look_later(&mut third);
        let mut all = [third];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
    });
}

#[test]
fn q4_one_that_is_stopped_is_passed_over_and_keeps_its_turn() {
    static IS_PASSED_OVER: AtomicBool = AtomicBool::new(false);
    explore("one that does not answer", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (mut first, mut second) = (scene.in_line(), scene.in_line());
        scene.finish_and_wake(holder, 0);
        scene.look(&mut second);
        assert!(!second.is_done(), "the first one may still answer");
        scene.time_passes();
        let pass = scene.with(move |scene| {
            scene.look(&mut second);
            second
        });
        let goes_on = scene.with(move |scene| {
            scene.look(&mut first);
            first
        });
        let (mut second, mut first) = race(pass, goes_on);
        // It may have gone on at that very moment.
        assert!(first.is_done() != second.is_done());
        if second.is_done() {
            IS_PASSED_OVER.store(true, Ordering::Relaxed);
            let again = scene.enter_any(second.slot);
            let engine = second.served.remove(0);
            scene.wait(&mut second, &[again]);
            scene.finish_and_wake(second.slot, engine);
            scene.settle(std::slice::from_mut(&mut first));
            assert!(first.is_done(), "it comes first again");
        }
        scene.assert_settled(&mut [first, second], &[]);
    });
    assert!(IS_PASSED_OVER.load(Ordering::Relaxed));
}
