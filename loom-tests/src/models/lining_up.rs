//! Q2, Q3 and Q5: who comes first, how many may wait, and what becomes of a place whose request leaves. Q1 for those that
//! leave.
//!
//! Bounds: as in `queueing`. A head is a handful of accesses, of which a reader makes four; to read it half takes one
//! switch into the middle of it.

use crate::algorithm::queue::order::{EngineSet, Size, Tag};
use crate::algorithm::queue::{Bound, Head};
use crate::explore::{explore, race};
use crate::queue_scene::{Frontend, QueueScene};
use loom::thread;
use std::sync::Arc;

fn looks(scene: &Arc<QueueScene>, mut frontend: Frontend) -> impl FnOnce() -> Frontend + use<> {
    scene.with(move |scene| {
        scene.look(&mut frontend);
        frontend
    })
}

fn finishes(scene: &Arc<QueueScene>, slot: usize) -> impl FnOnce() + use<> {
    scene.with(move |scene| scene.finish_and_wake(slot, 0))
}

#[test]
fn q2_of_two_that_wait_the_first_one_gets_the_place() {
    explore("two waiters and one finisher", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (first, second) = (scene.in_line(), scene.in_line());
        let finish = thread::spawn(finishes(&scene, holder));
        let (second, first) = race(looks(&scene, second), looks(&scene, first));
        finish.join().unwrap();
        let mut all = [first, second];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done() && !all[1].is_done());
    });
}

#[test]
fn q2_a_route_that_comes_later_gets_nothing_that_one_waits_for() {
    explore("a route past one that waits", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let (holder, waiter, other) = (scene.holder(), scene.in_line(), scene.join());
        let finish = thread::spawn(finishes(&scene, holder));
        let route = scene.with(move |scene| scene.route_past(other));
        let (waiter, routed) = race(looks(&scene, waiter), route);
        finish.join().unwrap();
        assert_eq!(routed, None);
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done());
    });
}

#[test]
fn q2_a_route_gets_a_place_that_those_who_wait_may_not_use() {
    explore("a route beside one that waits", 2, || {
        let scene = Arc::new(QueueScene::new(2, 1, 3));
        let (holder, other) = (scene.holder(), scene.join());
        let mut waiter = scene.frontend();
        let request = scene.enter(waiter.slot, 0, EngineSet::one(0), 0).unwrap();
        scene.wait(&mut waiter, &[request]);
        let route = scene.with(move |scene| scene.route_past(other));
        let (routed, ()) = race(route, finishes(&scene, holder));
        assert_eq!(routed, Some(1));
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[1]);
        assert_eq!(all[0].served, [0]);
    });
}

#[test]
fn q2_a_smaller_class_comes_first() {
    explore("a smaller class that came later", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let [mut last, mut first] = [scene.frontend(), scene.frontend()];
        for (frontend, class) in [(&mut last, 2), (&mut first, 1)] {
            let request = scene.enter(frontend.slot, class, EngineSet::ANY, 0);
            scene.wait(frontend, &[request.unwrap()]);
        }
        let finish = thread::spawn(finishes(&scene, holder));
        let (last, first) = race(looks(&scene, last), looks(&scene, first));
        finish.join().unwrap();
        let mut all = [first, last];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done() && !all[1].is_done());
    });
}

#[test]
fn q2_of_equal_tags_that_of_the_first_slot_comes_first() {
    explore("equal tags", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let [mut first, mut second] = [scene.frontend(), scene.frontend()];
        let tags = [(&mut second, 0), (&mut first, 1)].map(|(frontend, tenant)| {
            let request = scene.enter_as(frontend.slot, tenant);
            scene.wait(frontend, &[request]);
            request.tag
        });
        assert_eq!(tags[0], tags[1], "each tenant's first one");
        let finish = thread::spawn(finishes(&scene, holder));
        let (second, first) = race(looks(&scene, second), looks(&scene, first));
        finish.join().unwrap();
        let mut all = [first, second];
        scene.assert_settled(&mut all, &[]);
        assert!(all[0].is_done() && !all[1].is_done());
    });
}

#[test]
fn q2_tags_are_drawn_in_order() {
    explore("tags", 3, || {
        let scene = Arc::new(QueueScene::new(1, 1, 1));
        let draw = || scene.with(|scene| scene.queue().draw(0, None, 0, 1.0));
        let earlier = draw()();
        let served = scene.with(move |scene| scene.queue().served(earlier, 1));
        let served = thread::spawn(served);
        let (one, other) = race(draw(), draw());
        served.join().unwrap();
        assert!(one != other && earlier < one && earlier < other);
        let later = draw()();
        assert!(one < later && other < later);
    });
}

#[test]
fn q2_a_head_that_is_replaced_is_not_read_half() {
    explore("a head that is replaced", 3, || {
        let scene = Arc::new(QueueScene::new(2, 1, 1));
        let head = |start, engine| Head {
            tag: Tag::new(0, start),
            engines: EngineSet::one(engine),
            size: Size::new(engine as u32, 0),
        };
        let heads = [head(1, 0), head(2, 1)];
        scene.queue().publish(0, 0, heads[0]);
        let replace = scene.with(move |scene| {
            scene.queue().clear(0, 0);
            scene.queue().publish(0, 0, heads[1]);
        });
        let read = scene.with(|scene| scene.queue().head(0, 0));
        let ((), read) = race(replace, read);
        assert!(read.is_none_or(|read| heads.contains(&read)), "{read:?}");
    });
}

#[test]
fn q3_of_two_that_come_at_a_bound_of_one_one_waits() {
    explore("two at a bound of one", 3, || {
        let scene = Arc::new(QueueScene::new(1, 1, 2).with_bounds(1, 0));
        let (a, b) = (scene.join(), scene.join());
        let enter =
            |slot| scene.with(move |scene| scene.enter(slot, 0, EngineSet::ANY, 0).map(|_| slot));
        let entered = race(enter(a), enter(b));
        let slot = match entered {
            (Ok(slot), Err(Bound::All)) | (Err(Bound::All), Ok(slot)) => slot,
            both => panic!("{both:?}"),
        };
        assert_eq!(scene.queue().waiting(0), 1);
        scene.leave_queue(slot, 0);
        enter(a)().unwrap();
    });
}

#[test]
fn q3_a_class_has_a_bound_of_its_own() {
    explore("two at a bound of their class", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 2).with_bounds(2, 1));
        let (a, b) = (scene.join(), scene.join());
        let enter = |slot, class| {
            scene.with(move |scene| scene.enter(slot, class, EngineSet::ANY, 0).map(|_| ()))
        };
        let entered = race(enter(a, 1), enter(b, 1));
        match entered {
            (Ok(()), Err(bound)) | (Err(bound), Ok(())) => {
                // While both were counted on the first row, a third could have found that full.
                assert_eq!(bound, Bound::Class);
            }
            both => panic!("{both:?}"),
        }
        enter(a, 0)().unwrap();
        assert_eq!(enter(a, 0)(), Err(Bound::All));
        assert_eq!([0, 1].map(|class| scene.queue().waiting(class)), [1, 1]);
    });
}

#[test]
fn q5_cancel_against_grant() {
    // The first one leaves while a place falls free: the finisher may wake it though it has left, or find none.
    explore("cancel against grant", 3, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (mut first, second) = (scene.in_line(), scene.in_line());
        let cancel = scene.with(move |scene| {
            scene.give_up(&mut first);
            first
        });
        let (first, ()) = race(cancel, finishes(&scene, holder));
        assert!(first.served.is_empty());
        let mut all = [first, second];
        scene.assert_settled(&mut all, &[]);
        assert_eq!(all[1].served, [0], "the place goes to the next one");
    });
}

#[test]
fn q5_a_deadline_against_grant() {
    // The first one looks once more, and then leaves with what it has.
    explore("a deadline against grant", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (mut first, second) = (scene.in_line(), scene.in_line());
        let deadline = scene.with(move |scene| {
            scene.look(&mut first);
            let is_late = scene.give_up(&mut first);
            (first, is_late)
        });
        let ((first, is_late), ()) = race(deadline, finishes(&scene, holder));
        assert_eq!(is_late, first.served.is_empty());
        let mut all = [first, second];
        scene.assert_settled(&mut all, &[]);
        assert_eq!(all[1].is_done(), is_late, "one of the two has the place");
    });
}

#[test]
fn q5_a_place_that_its_caller_does_not_take_goes_to_the_next() {
    explore("a place that is not taken", 2, || {
        let scene = Arc::new(QueueScene::new(1, 1, 3));
        let holder = scene.holder();
        let (mut first, second) = (scene.in_line(), scene.in_line());
        let cancel = scene.with(move |scene| {
            scene.look(&mut first);
            if !scene.give_up(&mut first) {
                let engine = first.served.remove(0);
                scene.finish_and_wake(first.slot, engine);
            }
            first
        });
        let finish = thread::spawn(finishes(&scene, holder));
        let (first, second) = race(cancel, looks(&scene, second));
        finish.join().unwrap();
        let mut all = [first, second];
        scene.assert_settled(&mut all, &[]);
        assert_eq!(all[1].served, [0]);
    });
}

#[test]
fn q5_a_head_that_gives_way_to_one_of_other_engines_is_looked_after() {
    // The first request leaves, and in its place stands one that waits for another engine, on which a place falls free.
    explore("a head that gives way", 2, || {
        let scene = Arc::new(QueueScene::new(2, 1, 3));
        let (_, holder) = (scene.holder(), scene.holder());
        let mut waiter = scene.frontend();
        let slot = waiter.slot;
        let [first, second] = [0, 1].map(|engine| {
            let request = scene.enter(slot, 0, EngineSet::one(engine), 0);
            request.unwrap()
        });
        scene.wait(&mut waiter, &[first]);
        let replace = scene.with(move |scene| {
            scene.give_up(&mut waiter);
            scene.wait(&mut waiter, &[second]);
            waiter
        });
        let finish = scene.with(move |scene| scene.finish_and_wake(holder, 1));
        let (waiter, ()) = race(replace, finish);
        let mut all = [waiter];
        scene.assert_settled(&mut all, &[0]);
        assert_eq!(all[0].served, [1]);
    });
}
