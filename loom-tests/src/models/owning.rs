//! A lane's memory is touched by one thread at a time: in a lane of its own, in one that threads share, and in one that
//! an ended thread has left, of which the next owner sees all that was done in it. Loom fails if two accesses to a
//! [`LaneCell`] are not ordered.
//!
//! Bounds: two preemptions; three threads, of which one ends before or while the others look for a
//! lane, and two thread slots, so that a slot is used again.

use crate::algorithm::lane_cell::LaneCell;
use crate::algorithm::lifetime::{HandleCount, LaneUse};
use crate::algorithm::owner::{Owner, ThreadKey, ThreadSlot, Threads, claim};
use crate::algorithm::primitive::AtomicU64;
use crate::explore::explore;
use loom::thread;
use std::sync::Arc;

struct Lane {
    owner: Owner,
    usage: LaneUse,
    /// How often it was used.
    memory: LaneCell<usize>,
}

impl Lane {
    fn new() -> Self {
        Self {
            owner: Owner::new(),
            usage: LaneUse::new(),
            memory: LaneCell::new(0),
        }
    }

    /// Uses the lane's memory in an operation that the thread is in.
    fn touch(&self) {
        // SAFETY: no other thread does so, which is what loom checks here.
        unsafe { self.memory.with(|uses| *uses += 1) }
    }

    fn uses(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.memory.with(|uses| *uses) }
    }
}

struct Scene {
    slots: Vec<ThreadSlot>,
    ended: AtomicU64,
    lanes: Vec<Lane>,
}

impl Scene {
    fn new(slots: usize, lanes: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: (0..slots).map(|_| ThreadSlot(AtomicU64::new(0))).collect(),
            ended: AtomicU64::new(0),
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
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
        assert!(lane.usage.enter_own(), "no other thread is in it");
        lane.touch();
        lane.usage.leave();
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

/// Two threads use one lane that they share, each `twice` as `leave` says.
fn share(name: &str, leave: fn(&LaneUse, &HandleCount)) {
    explore(name, 3, move || {
        let shared = Arc::new((Lane::new(), HandleCount::new()));
        let threads = [0, 1].map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (lane, handles) = &*shared;
                for _ in 0..2 {
                    while !lane.usage.enter_shared() {
                        thread::yield_now();
                    }
                    lane.touch();
                    leave(&lane.usage, handles);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.0.uses(), 4);
    });
}

#[test]
fn threads_share_a_lane_one_after_the_other() {
    share("two threads in a shared lane", |usage, _| usage.leave());
}

#[test]
fn threads_that_make_and_end_permits_share_a_lane_one_after_the_other() {
    share(
        "two threads that end permits in a shared lane",
        |usage, handles| {
            let _count = usage.add_permit();
            usage.end_permit(handles);
            usage.leave();
        },
    );
}

#[test]
fn a_thread_in_a_lane_of_its_own_and_in_the_shared_one() {
    // As in a signal handler, or for want of a lane: both lanes have a memory of their own.
    explore("an owned lane and the shared one", 3, || {
        let scene = Scene::new(2, 2);
        let threads = [0, 1].map(|_| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let me = scene.threads().begin().unwrap();
                let own = (scene.claim(me)).filter(|&lane| lane == 0);
                let shared = &scene.lanes[1].usage;
                while !shared.enter_shared() {
                    thread::yield_now();
                }
                if let Some(own) = own {
                    scene.use_own(own, me);
                }
                scene.lanes[1].touch();
                shared.leave();
                scene.threads().end(me);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(scene.lanes[1].uses(), 2);
    });
}
