//! What handles and permits share is taken apart once, after the last access of anybody.
//!
//! Bounds: the closer, or whoever ends a permit, has to come in between two accesses of another; two
//! preemptions let two threads do so, and a third thread's end costs none.

use crate::algorithm::hold::{Handles, LaneHold, is_unheld, pass_for_a_reason};
use crate::explore::explore;
use crate::primitive::{AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// Two lanes with a permit each, and a list that the thing can wait in.
struct Shared {
    handles: Handles,
    lanes: [LaneHold; 2],
    /// 1: it waits in the list. 0: somebody has it in hand, or nobody has put it there yet.
    waiting: AtomicU64,
    reasons: AtomicU64,
    /// Read by all who use the thing and written by who takes it apart: loom fails if one of the reads
    /// does not come before.
    thing: UnsafeCell<usize>,
}

// SAFETY: it is what the models check, with loom looking at each access to the thing.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Self {
        let shared = Self {
            handles: Handles::new(),
            lanes: [LaneHold::new(), LaneHold::new()],
            waiting: AtomicU64::new(0),
            reasons: AtomicU64::new(0),
            thing: UnsafeCell::new(0),
        };
        for lane in &shared.lanes {
            assert!(lane.enter_shared());
            lane.add_permit();
            lane.leave();
        }
        shared
    }

    fn touch(&self) {
        self.thing.with(|_| ());
    }

    /// Ends a permit in the lane, whoever has made it.
    fn end_permit(&self, lane: usize) {
        let lane = &self.lanes[lane];
        while !lane.enter_shared() {
            thread::yield_now();
        }
        self.touch();
        let is_closed = self.handles.is_closed();
        lane.end_permit();
        self.touch();
        lane.leave();
        if is_closed {
            self.give_back();
        }
    }

    fn drop_handle(&self) {
        self.touch();
        if !self.handles.drop_one() {
            return;
        }
        self.handles.close();
        for lane in &self.lanes {
            while lane.is_busy() {
                thread::yield_now();
            }
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.give_back();
    }

    fn give_back(&self) {
        pass_for_a_reason(&self.reasons, || {
            if self.waiting.swap(0, Ordering::AcqRel) == 0 {
                return;
            }
            if is_unheld(self.lanes.iter()) {
                self.thing.with_mut(|times| {
                    // SAFETY: in no other thread's hands, which is what loom checks here.
                    unsafe { *times += 1 };
                });
            } else {
                self.waiting.swap(1, Ordering::AcqRel);
            }
        });
    }

    /// Those who were too early to see that the last handle was gone leave it to the next to look.
    fn assert_taken_apart_by_the_next(&self) {
        self.give_back();
        self.assert_taken_apart();
    }

    fn assert_taken_apart(&self) {
        let times = self.thing.with(|times| {
            // SAFETY: all other threads have ended.
            unsafe { *times }
        });
        assert_eq!(times, 1);
    }
}

#[test]
fn two_permits_end_while_the_last_handle_goes() {
    explore("two permits and a handle", 2, || {
        let shared = Arc::new(Shared::new());
        let others = [0, 1].map(|lane| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.end_permit(lane))
        });
        shared.drop_handle();
        for other in others {
            other.join().unwrap();
        }
        shared.assert_taken_apart_by_the_next();
    });
}

#[test]
fn two_permits_end_in_one_lane_after_the_last_handle_has_gone() {
    explore("two permits in one lane", 3, || {
        let shared = Arc::new(Shared::new());
        shared.drop_handle();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.end_permit(0))
        };
        shared.end_permit(0);
        other.join().unwrap();
        shared.assert_taken_apart();
    });
}

#[test]
fn two_handles_go_and_a_permit_ends() {
    explore("two handles and a permit", 2, || {
        let shared = Arc::new(Shared::new());
        shared.handles.add();
        shared.end_permit(1);
        let others = [
            {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.drop_handle())
            },
            {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.end_permit(0))
            },
        ];
        shared.drop_handle();
        for other in others {
            other.join().unwrap();
        }
        shared.assert_taken_apart_by_the_next();
    });
}
