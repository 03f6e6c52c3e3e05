//! All requests of a frontend that wait, and how places are found for them.
//!
//! Each thread that looks for places does so for all requests of its frontend, in their order, and gives each its
//! outcome. So it does not matter which of the threads is woken. Threads and tasks sleep in ways of their own: see
//! [`blocking`](super::blocking) and [`task`](super::task).
//!
//! The lock of this state comes before that of a lane. No code of the user's runs under it but a custom policy.

use super::group::Groups;
use super::waiter::{Outcome, Sleeper, Waiter};
use crate::algorithm::lifetime::retired::Retire;
use crate::algorithm::queue::Bound;
use crate::algorithm::queue::order::Key;
use crate::algorithm::queue::serve::Looks;
use crate::algorithm::record::waited::Unserved;
use crate::error::{AcquireError, RouteError};
use crate::frontend::membership::Membership;
use crate::frontend::operation::Operation;
use crate::shm::clock;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// How often a request that waits looks by itself for a place.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// How often it does so if one other frontend comes first, which may be stopped or dead, or if a place is free for others.
const SECOND_LOOK: Duration = Duration::from_millis(10);

/// The requests of a frontend that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
    /// Tells the thread of the tasks that a task waits, or that the frontend has left.
    pub(super) has_tasks: Condvar,
}

/// How a thread sleeps on the word in the table after a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Only while the word is this one.
    pub(super) seen: u64,
    pub(super) pause: Duration,
}

/// A frontend while it looks for places.
struct Looking<'a>(&'a mut State, &'a Membership);

impl Looks for Looking<'_> {
    fn serve_one(&mut self) -> bool {
        self.0.serve_one(self.1)
    }

    fn wake_next(&mut self) -> bool {
        self.1.table().wake_next(Some(self.1.slot()))
    }
}

/// What the lock protects.
#[derive(Debug, Default)]
pub(super) struct State {
    groups: Groups,
    /// The number of the request whose thread sleeps on the word in the table.
    pub(super) leader: Option<u64>,
    /// Whether it sleeps there, or is about to.
    pub(super) leader_sleeps: bool,
    /// When a thread last looked for places; nanoseconds of the monotonic clock, some 4 ms late.
    looked_at: u64,
    /// How many tasks wait.
    pub(super) tasks: usize,
    /// The earliest deadline of a task, or an earlier time; nanoseconds of the monotonic clock.
    pub(super) first_deadline: u64,
    /// When the thread of the tasks looks by itself.
    pub(super) looks_at: u64,
    /// Whether the thread of the tasks runs.
    pub(super) has_thread: bool,
    pub(super) is_closed: bool,
    /// Tasks to wake, and requests to drop, when the lock is free: either may run any code.
    wakers: Vec<Waker>,
    done: Vec<Arc<Waiter>>,
}

impl Waiters {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No code that may panic runs under it: a panic of a custom policy is caught.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the lock, and then wakes the tasks that have their outcome.
    pub(super) fn release(mut state: MutexGuard<'_, State>) {
        let (wakers, done) = (mem::take(&mut state.wakers), mem::take(&mut state.done));
        drop(state);
        for waker in wakers {
            // Its panic was reported, and keeps no other task asleep: this thread may be that of all tasks.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        drop(done);
    }

    /// The frontend leaves: no request of it waits.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.has_tasks.notify_all();
    }
}

impl State {
    /// Has a request begin to wait.
    pub(super) fn enter(&mut self, waiter: &Arc<Waiter>) -> Result<(), AcquireError> {
        let membership = waiter.frontend.membership();
        let (table, slot) = (membership.table(), membership.slot());
        let queue = table.queue();
        let class = waiter.class();
        let entered = Operation::begin(membership)
            .ok_or(RouteError::Forked)?
            .enter_queue(class);
        if let Err(bound) = entered {
            let waited = &table.mapping().waited()[slot];
            waited.count_unserved(Unserved::Refused);
            let ahead: u32 = (0..=class).map(|class| queue.waiting(class)).sum();
            let retry_after = Some(queue.expected_wait(ahead)).filter(|wait| *wait > 0);
            let full = |class| AcquireError::QueueFull {
                class,
                retry_after: retry_after.map(Duration::from_nanos),
            };
            return Err(match bound {
                Bound::NoQueue => AcquireError::NoQueue,
                Bound::All => full(None),
                Bound::Class => full(Some(class as u8)),
            });
        }
        waiter.draw();
        if waiter.sleeper.is_task() {
            self.tasks += 1;
            self.first_deadline = match self.tasks {
                1 => waiter.deadline,
                _ => self.first_deadline.min(waiter.deadline),
            };
        }
        // One that is not the first of its group has its turn after that one.
        if self.groups.add(waiter, &queue, slot) {
            self.serve(membership, false);
        }
        Ok(())
    }

    /// Looks for places for all requests, and returns how a thread may sleep before the next look. `left`: whether a head
    /// was taken away before.
    pub(super) fn serve(&mut self, membership: &Membership, mut left: bool) -> Rest {
        let (table, slot) = (membership.table(), membership.slot());
        let queue = table.queue();
        left |= self.end_late_tasks(membership);
        loop {
            let has_left = mem::take(&mut left);
            let seen = queue.serve(slot, has_left, &mut Looking(self, membership));
            let rest = |pause| Rest { seen, pause };
            let heads = self.groups.heads();
            let Some(first) = heads.first() else {
                return rest(LOOK);
            };
            let tag = first.tag();
            let now = clock::now_coarse();
            self.looked_at = now;
            let before = queue.frontends_before(Key { tag, slot }, now);
            let is_near = before == 1 || before > 1 && table.has_place_for_others(slot);
            let pause = if is_near { SECOND_LOOK } else { LOOK };
            // If each did the rest at each look, those that wait would wake each other without end.
            if !queue.has_to_reap(now) {
                return rest(pause);
            }
            table.wake_those_in_line(slot);
            // What dead frontends hold, those that come before included.
            if !table.reap_unless_busy() {
                return rest(pause);
            }
        }
    }

    /// Gives one request its outcome. False: there is none for any.
    fn serve_one(&mut self, membership: &Membership) -> bool {
        let slot = membership.slot();
        self.groups.heads().iter().any(|waiter| {
            let key = Key {
                tag: waiter.tag(),
                slot,
            };
            let place = || {
                let frontend = &waiter.frontend;
                waiter.with_request(|request| frontend.place_in_turn(waiter.count, request, key))
            };
            // A panic of a custom policy is its caller's: this thread may be another one, which looks on for the rest.
            let outcome = match panic::catch_unwind(AssertUnwindSafe(place)) {
                Ok(Err(RouteError::Saturated { passes: true, .. })) => return false,
                Ok(Ok(batch)) => Ok(Ok(batch)),
                Ok(Err(error)) => {
                    waiter.frontend.count_refusal(error);
                    Ok(Err(error.into()))
                }
                Err(panic) => Err(panic),
            };
            self.end(membership, waiter, outcome);
            true
        })
    }

    /// Takes a request out that waits, and gives it its outcome.
    fn end(&mut self, membership: &Membership, waiter: &Arc<Waiter>, outcome: Outcome) {
        let now = clock::now();
        let (table, slot) = (membership.table(), membership.slot());
        let waited = &table.mapping().waited()[slot];
        match &outcome {
            Ok(Ok(_)) => {
                table.queue().served(waiter.tag(), now);
                waited.count_served(now.saturating_sub(waiter.since));
            }
            Ok(Err(AcquireError::WaitedTooLong { .. })) => {
                waited.count_unserved(Unserved::TimedOut)
            }
            Ok(Err(_)) | Err(_) => waited.count_unserved(Unserved::Cancelled),
        }
        self.take_out(membership, waiter);
        waiter.set_outcome(outcome);
        match &waiter.sleeper {
            // The leader sleeps in the table. If it is this very thread, it is not asleep.
            Sleeper::Thread(_) if self.leader == Some(waiter.number) => {
                if self.leader_sleeps {
                    table.wake_own(slot);
                }
            }
            Sleeper::Thread(condvar) => condvar.notify_one(),
            // Not cloned, which may run any code.
            Sleeper::Task(_) => self.wakers.push(waiter.swap_waker(Waker::noop().clone())),
        }
        self.done.push(Arc::clone(waiter));
    }

    /// Ends a request's wait because its caller does. False: it has its outcome already.
    pub(super) fn give_up(&mut self, waiter: &Arc<Waiter>, how: Unserved) -> bool {
        let membership = waiter.frontend.membership();
        if !self.take_out(membership, waiter) {
            return false;
        }
        let waited = &membership.table().mapping().waited()[membership.slot()];
        waited.count_unserved(how);
        self.serve(membership, true);
        true
    }

    fn take_out(&mut self, membership: &Membership, waiter: &Waiter) -> bool {
        let queue = membership.table().queue();
        if !self.groups.remove(waiter, &queue, membership.slot()) {
            return false;
        }
        self.tasks -= usize::from(waiter.sleeper.is_task());
        // Not in a child that was forked by a custom policy.
        if let Some(operation) = Operation::begin(membership) {
            operation.leave_queue(waiter.class());
        }
        true
    }

    /// Ends the wait of tasks whose time is over. Returns whether there were some.
    fn end_late_tasks(&mut self, membership: &Membership) -> bool {
        let now = clock::now();
        if self.tasks == 0 || now < self.first_deadline {
            return false;
        }
        let is_task = |waiter: &&Arc<Waiter>| waiter.sleeper.is_task();
        let late: Vec<_> = (self.groups.all().filter(is_task))
            .filter(|waiter| waiter.is_late(now))
            .cloned()
            .collect();
        for waiter in &late {
            let waited = waiter.waited(now);
            self.end(
                membership,
                waiter,
                Ok(Err(AcquireError::WaitedTooLong { waited })),
            );
        }
        let left = self.groups.all().filter(is_task);
        self.first_deadline = left.map(|waiter| waiter.deadline).min().unwrap_or(u64::MAX);
        !late.is_empty()
    }

    /// Whether the thread of a request leads after it was asked whether it goes on, and sleeps next as if it had looked.
    pub(super) fn still_leads(&mut self, number: u64) -> bool {
        let leads = self.leader == Some(number);
        if leads {
            self.looked_at = clock::now_coarse();
        }
        leads
    }

    /// Has another thread lead if the one that does has not looked for long: it is being asked whether it goes on.
    pub(super) fn depose_the_busy(&mut self) {
        let pause = clock::now_coarse().saturating_sub(self.looked_at);
        if Duration::from_nanos(pause) > LOOK * 3 / 2 {
            (self.leader, self.leader_sleeps) = (None, false);
        }
    }

    /// The thread of a request does not sleep on the word in the table any more: another one does.
    pub(super) fn hand_on(&mut self, number: u64) {
        // If none leads, then this was the one that was told to, and has given up.
        if self.leader.is_some_and(|leader| leader != number) {
            return;
        }
        (self.leader, self.leader_sleeps) = (None, false);
        let threads = self
            .groups
            .all()
            .filter_map(|waiter| match &waiter.sleeper {
                Sleeper::Thread(condvar) => Some((waiter.tag(), waiter.number, condvar)),
                Sleeper::Task(_) => None,
            });
        if let Some((_, _, condvar)) = threads.min_by_key(|(tag, number, _)| (*tag, *number)) {
            condvar.notify_one();
        }
    }

    /// A frontend of one of the tasks that wait.
    pub(super) fn a_task(&self) -> Option<&Arc<Waiter>> {
        (self.groups.all()).find(|waiter| waiter.sleeper.is_task())
    }
}

/// Whether this process may take the lock: in a forked child another thread may hold it for ever.
pub(super) fn check_process(membership: &Membership) -> Result<(), RouteError> {
    match membership.is_ours() {
        true => Ok(()),
        false => Err(RouteError::Forked),
    }
}
