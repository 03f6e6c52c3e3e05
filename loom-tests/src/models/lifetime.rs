//! A thing that handles and permits share is taken apart once, after the last access of any thread.
//!
//! Bounds: the closer, or a thread that ends a permit, has to come in between two accesses of another;
//! two preemptions let two threads do so, and a third thread's end costs none.

use crate::algorithm::lifetime::retired::{Retire, Retired};
use crate::algorithm::lifetime::{HandleCount, LaneUse};
use crate::algorithm::primitive::{AtomicPtr, AtomicU64, Ordering, fence};
use crate::explore::explore;
use loom::cell::UnsafeCell;
use loom::thread;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Two lanes with a permit each.
struct Thing {
    handles: HandleCount,
    lanes: [LaneUse; 2],
    next: AtomicPtr<Thing>,
    /// How often it was taken apart. Each user of the thing reads it, and the thread that takes it apart writes it:
    /// loom fails if one of the reads does not come before.
    apart: UnsafeCell<usize>,
}

impl Retire for Thing {
    fn handles(&self) -> &HandleCount {
        &self.handles
    }

    fn lanes(&self) -> impl Iterator<Item = &LaneUse> + Clone {
        self.lanes.iter()
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }

    fn is_ours(&self) -> bool {
        true
    }

    // SAFETY: as the trait says; the scene keeps the memory.
    unsafe fn take_apart(this: NonNull<Self>) {
        // SAFETY: the scene keeps the memory, so that loom can name the thread that comes too late.
        unsafe { this.as_ref() }.apart.with_mut(|times| {
            // SAFETY: in no other thread's hands, which is what loom checks here.
            unsafe { *times += 1 };
        });
    }
}

/// Things, and the list in which they wait.
struct Scene {
    things: Vec<Thing>,
    retired: Retired<Thing>,
}

// SAFETY: it is what the models check, with loom looking at each access to the things.
unsafe impl Sync for Scene {}
// SAFETY: as above.
unsafe impl Send for Scene {}

impl Scene {
    fn new(things: usize) -> Arc<Self> {
        let thing = || Thing {
            handles: HandleCount::new(),
            lanes: [LaneUse::new(), LaneUse::new()],
            next: AtomicPtr::new(ptr::null_mut()),
            apart: UnsafeCell::new(0),
        };
        let scene = Self {
            things: (0..things).map(|_| thing()).collect(),
            retired: Retired {
                first: AtomicPtr::new(ptr::null_mut()),
                requests: AtomicU64::new(0),
            },
        };
        for lane in scene.things.iter().flat_map(|thing| &thing.lanes) {
            assert!(lane.enter_shared());
            let _count = lane.add_permit();
            lane.leave();
        }
        Arc::new(scene)
    }

    fn touch(&self, thing: usize) {
        self.things[thing].apart.with(|_| ());
    }

    /// Ends a permit in the lane, whichever has made it. The operation's compare-and-swap is a fence, as it
    /// is on x86-64.
    fn end_permit(&self, thing: usize, lane: usize) {
        self.end_permit_with(thing, lane, || fence(Ordering::SeqCst));
    }

    /// The same where a compare-and-swap is no fence.
    fn end_permit_without_fence(&self, thing: usize, lane: usize) {
        self.end_permit_with(thing, lane, || ());
    }

    fn end_permit_with(&self, thing: usize, lane: usize, compare_and_swap: fn()) {
        let lane = &self.things[thing].lanes[lane];
        while !lane.enter_shared() {
            thread::yield_now();
        }
        self.touch(thing);
        compare_and_swap();
        let is_closed = lane.end_permit(&self.things[thing].handles);
        self.touch(thing);
        // SAFETY: this thread is in an operation in the lane.
        unsafe { self.retired.leave(NonNull::from(lane), is_closed) };
    }

    fn drop_handle(&self, thing: usize) {
        self.touch(thing);
        // SAFETY: each scene drops as many handles as it has made, and outlives its threads.
        unsafe {
            (self.retired).drop_handle(NonNull::from(&self.things[thing]), thread::yield_now);
        }
    }

    fn assert_taken_apart(&self) {
        for thing in &self.things {
            let times = thing.apart.with(|times| {
                // SAFETY: all other threads have ended.
                unsafe { *times }
            });
            assert_eq!(times, 1);
        }
    }
}

/// Runs these in threads of their own beside `here`.
fn beside<const N: usize>(scene: &Arc<Scene>, others: [fn(&Scene); N], here: impl FnOnce(&Scene)) {
    let others = others.map(|other| {
        let scene = Arc::clone(scene);
        thread::spawn(move || other(&scene))
    });
    here(scene);
    for other in others {
        other.join().unwrap();
    }
}

#[test]
fn two_permits_end_while_the_last_handle_goes() {
    explore("two permits and a handle", 2, || {
        let scene = Scene::new(1);
        beside(
            &scene,
            [
                |scene| scene.end_permit(0, 0),
                |scene| scene.end_permit(0, 1),
            ],
            |scene| scene.drop_handle(0),
        );
        scene.assert_taken_apart();
    });
}

#[test]
fn two_permits_end_in_one_lane_after_the_last_handle_has_gone() {
    explore("two permits in one lane", 3, || {
        let scene = Scene::new(1);
        scene.drop_handle(0);
        beside(&scene, [|scene| scene.end_permit(0, 0)], |scene| {
            scene.end_permit(0, 0)
        });
        scene.assert_taken_apart();
    });
}

#[test]
fn two_handles_go_and_a_permit_ends() {
    explore("two handles and a permit", 2, || {
        let scene = Scene::new(1);
        scene.things[0].handles.add();
        scene.end_permit(0, 1);
        beside(
            &scene,
            [|scene| scene.drop_handle(0), |scene| scene.end_permit(0, 0)],
            |scene| scene.drop_handle(0),
        );
        scene.assert_taken_apart();
    });
}

#[test]
fn permits_of_two_things_in_the_list_end() {
    explore("permits of two things", 2, || {
        let scene = Scene::new(2);
        for thing in [0, 1] {
            scene.drop_handle(thing);
            scene.end_permit(thing, 0);
        }
        beside(&scene, [|scene| scene.end_permit(0, 1)], |scene| {
            scene.end_permit(1, 1)
        });
        scene.assert_taken_apart();
    });
}

#[test]
fn two_permits_end_in_one_lane_while_the_last_handle_goes_without_fences() {
    explore("two permits and a handle, without fences", 2, || {
        let scene = Scene::new(1);
        beside(
            &scene,
            [
                |scene| scene.end_permit_without_fence(0, 0),
                |scene| scene.end_permit_without_fence(0, 0),
            ],
            |scene| scene.drop_handle(0),
        );
        // It may have to wait for the next look, but it is not taken apart before its last permit has ended.
        scene.retired.give_back();
        scene.assert_taken_apart();
    });
}
