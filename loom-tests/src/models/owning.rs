//! A lane has one owner at a time, and the next owner sees all that a thread did in it which has ended.
//!
//! Bounds: two preemptions; three threads, of which one ends before or while the others look for a
//! lane, and two thread slots, so that a slot is used again.

use crate::algorithm::lifetime::LaneUse;
use crate::algorithm::owner::{Owner, ThreadKey, ThreadSlot, Threads, claim};
use crate::algorithm::primitive::AtomicU64;
use crate::explore::explore;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

struct Lane {
    owner: Owner,
    hold: LaneUse,
    /// The accesses of an owner to its lane without a locked instruction: loom fails if two do so unordered.
    uses: UnsafeCell<usize>,
}

struct Scene {
    slots: Vec<ThreadSlot>,
    ended: AtomicU64,
    lanes: Vec<Lane>,
}

// SAFETY: it is what the models check, with loom looking at each use of a lane.
unsafe impl Sync for Scene {}
// SAFETY: as above.
unsafe impl Send for Scene {}

impl Scene {
    fn new(slots: usize, lanes: usize) -> Arc<Self> {
        let lane = || Lane {
            owner: Owner::new(),
            hold: LaneUse::new(),
            uses: UnsafeCell::new(0),
        };
        Arc::new(Self {
            slots: (0..slots).map(|_| ThreadSlot(AtomicU64::new(0))).collect(),
            ended: AtomicU64::new(0),
            lanes: (0..lanes).map(|_| lane()).collect(),
        })
    }

    fn threads(&self) -> Threads<'_> {
        Threads {
            slots: &self.slots,
            ended: &self.ended,
        }
    }

    fn claim(&self, me: ThreadKey) -> Option<usize> {
        claim(
            self.lanes.iter().map(|lane| &lane.owner),
            me,
            self.threads(),
        )
    }

    fn use_own(&self, lane: usize, me: ThreadKey) {
        let lane = &self.lanes[lane];
        assert!(lane.owner.is(me), "a claimed lane stays its owner's");
        assert!(lane.hold.enter_own(), "no other thread is in it");
        lane.uses.with_mut(|uses| {
            // SAFETY: no other thread uses it, which is what loom checks here.
            unsafe { *uses += 1 };
        });
        lane.hold.leave();
    }

    /// A thread's life: it uses a lane of its own twice, if it finds one, and ends.
    fn live(&self) -> bool {
        let Some(me) = self.threads().begin() else {
            return false;
        };
        let lane = self.claim(me);
        for lane in lane.iter().chain(&lane) {
            self.use_own(*lane, me);
        }
        self.threads().end(me);
        lane.is_some()
    }
}

#[test]
fn threads_that_come_and_go_hand_a_lane_on() {
    explore("three threads, one lane", 2, || {
        let scene = Scene::new(2, 1);
        let others = [0, 1].map(|_| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.live())
        });
        scene.live();
        for other in others {
            other.join().unwrap();
        }
        assert!(scene.live(), "all have ended, so the lane is free");
    });
}

#[test]
fn as_many_living_threads_as_lanes_have_one_each() {
    explore("two threads, two lanes, one owner that ended", 3, || {
        let scene = Scene::new(3, 2);
        assert!(scene.live(), "the lanes are free");
        let live = || {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let me = scene.threads().begin().unwrap();
                // Each is overtaken at one lane at most, and there is another.
                let lane = scene.claim(me).or_else(|| scene.claim(me)).unwrap();
                scene.use_own(lane, me);
                lane
            })
        };
        let threads = [live(), live()];
        let [one, other] = threads.map(|thread| thread.join().unwrap());
        assert_ne!(one, other);
    });
}

#[test]
fn a_thread_that_is_counted_as_ended_has_ended() {
    explore("an end that is counted", 3, || {
        let scene = Scene::new(2, 1);
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.live())
        };
        let me = scene.threads().begin().unwrap();
        let ended = scene.threads().ended();
        let lane = scene.claim(me);
        assert!(
            ended == 0 || lane.is_some(),
            "the lane of the other is free"
        );
        other.join().unwrap();
    });
}
