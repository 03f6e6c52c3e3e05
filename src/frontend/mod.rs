//! Frontends: processes that have joined a table, to route and finish requests.

mod choose;
mod lanes;
mod lifetime;
mod membership;
mod operation;
mod permit;
mod policy;
mod request;
mod thread;
mod waiting;

pub use permit::Permit;
pub use policy::{Candidate, Policy};
pub use request::Request;
pub use waiting::{Acquire, AcquireMany};

use crate::algorithm::lifetime::retired::Retire;
use crate::algorithm::queue::Turn;
use crate::algorithm::queue::order::{EngineSet, Key, Tag};
use crate::error::{Result, RouteError};
use crate::frontend::choose::Chooser;
use crate::frontend::choose::load::PolicyKey;
use crate::frontend::lifetime::MembershipRef;
use crate::frontend::membership::Membership;
use crate::frontend::operation::{Operation, Placed};
use crate::frontend::policy::Load;
use crate::shm::clock;
use crate::table::Table;
use crate::table::refusals::reason_of;
use crossbeam_utils::Backoff;
use std::fmt;

/// This process as a frontend of a table, with the policy by which it routes.
///
/// Clones are one frontend, and threads may share them. The first [`threads`](crate::Options::threads) threads
/// that use it have a lane each until they end, and never wait for another thread. All other threads share one
/// lane, and wait while another thread has an operation in it, which may be preempted there. Another frontend of
/// this process, of this table or of another one, has lanes of its own.
///
/// The process leaves the table when the last clone and the last [`Permit`] are gone, or when it dies, whatever it
/// dies of.
///
/// A child that was forked with a frontend cannot use it: its calls fail with [`RouteError::Forked`], and
/// dropping its copies of frontends and permits changes nothing. The child calls [`Table::join`] itself.
#[must_use = "dropping a frontend leaves the table"]
#[derive(Clone)]
pub struct Frontend {
    membership: MembershipRef,
    policy: Policy,
    /// The policy as a choice compares it.
    key: PolicyKey,
}

/// The permits of requests that are placed together.
#[derive(Debug)]
pub(crate) struct Batch {
    first: Permit,
    others: Vec<Permit>,
}

impl From<Permit> for Batch {
    fn from(first: Permit) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }
}

impl From<Batch> for Vec<Permit> {
    fn from(batch: Batch) -> Self {
        let mut permits = batch.others;
        permits.push(batch.first);
        permits
    }
}

impl fmt::Debug for Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontend")
            .field("table", self.table())
            .field("slot", &self.slot())
            .field("policy", &self.policy)
            .finish()
    }
}

impl Table {
    /// Joins this process to the table as a frontend, after returning what dead frontends held.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::Table;
    /// let table = Table::options().engines(4).memfd()?;
    /// let frontend = table.join()?;
    /// assert_eq!(table.view().frontends.len(), 1);
    /// drop(frontend); // leaves
    /// assert!(table.view().frontends.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// Some twenty-five system calls; one more for each place that is taken. Needs three free descriptors
    /// for a moment, and none later, and the right to open the table's file. If other threads fork meanwhile,
    /// it waits for them, for up to 300 ms at a time.
    ///
    /// # Errors
    /// [`Error::FrontendsFull`](crate::Error::FrontendsFull), [`Error::ReadOnly`](crate::Error::ReadOnly),
    /// [`Error::Io`](crate::Error::Io), also if /proc is not mounted.
    pub fn join(&self) -> Result<Frontend> {
        self.writable()?;
        lifetime::give_back();
        Ok(Frontend {
            membership: MembershipRef::new(Membership::take(self)?),
            key: PolicyKey::of(&Policy::default()),
            policy: Policy::default(),
        })
    }
}

impl Frontend {
    /// Returns this frontend with another policy.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Policy, Table};
    /// let table = Table::options().engines(4).memfd()?;
    /// let frontend = table.join()?;
    /// // The same frontend twice, by two policies.
    /// let by_tokens = frontend.clone().with_policy(Policy::tokens());
    /// let permits = (frontend.route()?, by_tokens.route()?);
    /// # Ok(()) }
    /// ```
    #[must_use = "the policy is that of the frontend that this returns"]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.key = PolicyKey::of(&policy);
        self.policy = policy;
        self
    }

    /// Places a request without tokens on the least loaded engine and counts it there, in one
    /// atomic step.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::Table;
    /// let table = Table::options().engines(2).memfd()?;
    /// let frontend = table.join()?;
    /// let (one, other) = (frontend.route()?, frontend.route()?);
    /// assert_ne!(one.engine(), other.engine());
    /// # Ok(()) }
    /// ```
    ///
    /// No system call, no allocation, no wait for any other process. Costs one compare-and-swap if no other
    /// process interferes, and a load or two for each engine. If all engines are at their caps, it looks for dead
    /// frontends by system calls, at most a hundred times a second. Under a
    /// [cap of the table](crate::Options::max_in_flight), a request that finds room but for those being placed
    /// looks again for some microseconds.
    ///
    /// A signal handler must not call it: a handler that interrupts an operation may find no free lane, and would
    /// wait for the operation that it has interrupted. For the same reason a handler must not drop a [`Permit`] or
    /// fork. A [custom policy](Policy::custom) may do all of these.
    ///
    /// # Errors
    /// [`RouteError::Saturated`], [`RouteError::Unavailable`], [`RouteError::Forked`].
    #[inline]
    pub fn route(&self) -> Result<Permit, RouteError> {
        match self.place_anywhere(0) {
            Some(permit) => Ok(permit),
            None => self.route_by_all(),
        }
    }

    /// Places a request that has a cost or a say in where it goes, as [`Request`] says.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Request, RouteError, Table};
    /// let table = Table::options().engines(2).memfd()?;
    /// let frontend = table.join()?;
    /// let permit = frontend.route_with(&Request::new().tokens(812))?;
    /// // The engine has failed: try another one.
    /// let tried = [permit.engine()];
    /// let next = frontend.route_with(&Request::new().tokens(812).exclude(&tried))?;
    /// drop(permit);
    /// assert_ne!(next.engine(), tried[0]);
    ///
    /// let tried = [tried[0], next.engine()];
    /// let refused = frontend.route_with(&Request::new().exclude(&tried));
    /// assert!(matches!(refused, Err(RouteError::Unavailable(why)) if why.excluded() == 2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`route`](Self::route), and [`RouteError::NoSuchEngine`] for one that is pinned.
    pub fn route_with(&self, request: &Request<'_>) -> Result<Permit, RouteError> {
        self.or_reap(|| self.place(request))
    }

    /// Places `count` requests as that many calls of [`route`](Self::route) would, or none.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Engine, Table};
    /// let engine = |name: &str| Engine::named(name).max_in_flight(3);
    /// let table = Table::options().engine(engine("a")).engine(engine("b")).memfd()?;
    /// let frontend = table.join()?;
    /// let permits = frontend.route_many(4)?; // two on each
    /// assert!(frontend.route_many(3).is_err(), "there is room for two");
    /// assert_eq!(table.view().engines[0].in_flight, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// If there turns out to be no room for the rest, the requests that were placed are finished. Until then other
    /// processes may find the table full.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub fn route_many(&self, count: usize) -> Result<Vec<Permit>, RouteError> {
        self.route_many_with(count, &Request::new())
    }

    /// Places `count` requests that are alike, or none.
    ///
    /// # Errors
    /// As [`route_with`](Self::route_with).
    pub fn route_many_with(
        &self,
        count: usize,
        request: &Request<'_>,
    ) -> Result<Vec<Permit>, RouteError> {
        self.or_reap(|| self.place_all(count, request))
    }

    /// Returns the table.
    pub fn table(&self) -> &Table {
        self.membership.table()
    }

    /// Returns the number of its slot in the table; [`FrontendView::slot`](crate::FrontendView::slot).
    pub fn slot(&self) -> usize {
        self.membership.slot()
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Places a request that may go anywhere. `None`: there is no room, or the policy has no terms.
    #[inline(always)] // a caller that knows the tokens makes half of it go away
    fn place_anywhere(&self, tokens: u32) -> Option<Permit> {
        if !self.key.has_terms() {
            return None;
        }
        let placed = Operation::begin(&self.membership)?.place_anywhere(&self.key, tokens)?;
        Some(self.permit(placed, tokens))
    }

    #[inline]
    fn permit(&self, Placed { engine, count }: Placed, tokens: u32) -> Permit {
        Permit::new(self.membership.counted(count, engine, tokens))
    }

    fn operation(&self) -> Result<Operation<'_>, RouteError> {
        Operation::begin(&self.membership).ok_or(RouteError::Forked)
    }

    /// Tries again if there was no room and a dead frontend held some. Counts the call if it is refused.
    fn or_reap<T>(&self, place: impl Fn() -> Result<T, RouteError>) -> Result<T, RouteError> {
        let mut placed = place();
        if matches!(placed, Err(RouteError::Saturated { .. })) && self.membership.reap_if_due() {
            placed = place();
        }
        placed.inspect_err(|error| self.count_refusal(*error))
    }

    #[cold]
    fn count_refusal(&self, error: RouteError) {
        if let Some(reason) = reason_of(error)
            && let Some(operation) = Operation::begin(&self.membership)
        {
            operation.count_refusal(reason);
        }
    }

    fn place(&self, request: &Request<'_>) -> Result<Permit, RouteError> {
        request.check()?;
        if request.goes_anywhere()
            && let Some(permit) = self.place_anywhere(request.tokens)
        {
            return Ok(permit);
        }
        self.place_by_all(request)
    }

    /// Routes a request that found no place by the short way.
    #[inline(never)]
    fn route_by_all(&self) -> Result<Permit, RouteError> {
        self.or_reap(|| self.place_by_all(&Request::new()))
    }

    /// Places a request by all that counts, behind those that wait.
    fn place_by_all(&self, request: &Request<'_>) -> Result<Permit, RouteError> {
        let placed = match self.membership.awaited().is_so() {
            false => self.place_behind(request, &[]),
            true => self.place_last(1, request).map(|batch| batch.first),
        };
        self.table().wake_after_placing();
        placed
    }

    /// Places so many requests that are alike, or none, behind those that wait.
    fn place_batch(&self, count: usize, request: &Request<'_>) -> Result<Batch, RouteError> {
        let placed = match self.membership.awaited().is_so() {
            _ if !self.membership.is_ours() => return Err(RouteError::Forked),
            false => self.place_batch_behind(count, request, &[]),
            true => self.place_last(count, request),
        };
        self.table().wake_after_placing();
        placed
    }

    /// Places requests behind all that wait.
    fn place_last(&self, count: usize, request: &Request<'_>) -> Result<Batch, RouteError> {
        let last = Key {
            tag: Tag::last_of(request.class.into()),
            slot: usize::MAX,
        };
        self.place_in_turn(count, request, last)
    }

    /// Places so many requests that are alike, or none, where no request comes first that waits and has a smaller key.
    fn place_in_turn(
        &self,
        count: usize,
        request: &Request<'_>,
        key: Key,
    ) -> Result<Batch, RouteError> {
        if !self.membership.is_ours() {
            return Err(RouteError::Forked);
        }
        let now = clock::now_coarse();
        match (self.table().queue()).turn(key, request.engine_set(self.table()), now) {
            Turn::Ahead { but } => self.place_batch_behind(count, request, &but),
            Turn::Behind => Err(Chooser::new(self.table(), &self.key, request).behind_all(count)),
        }
    }

    /// Places so many requests that are alike on any engines but those on which others come first: one by one, after a look
    /// whether there is room for all.
    fn place_batch_behind(
        &self,
        count: usize,
        request: &Request<'_>,
        others: &[EngineSet],
    ) -> Result<Batch, RouteError> {
        if count > 1 {
            let chooser = Chooser::new(self.table(), &self.key, request).behind(others);
            chooser.check_room(count)?;
        }
        let place = || self.place_behind(request, others);
        let first = place()?;
        let others = (1..count).map(|_| place()).collect::<Result<_, _>>()?;
        Ok(Batch { first, others })
    }

    /// Places a request on any engines but those on which others come first.
    fn place_behind(
        &self,
        request: &Request<'_>,
        others: &[EngineSet],
    ) -> Result<Permit, RouteError> {
        let chooser = Chooser::new(self.table(), &self.key, request).behind(others);
        let placed = match self.policy {
            Policy::Custom(ref load) => self.place_by_custom(load, &chooser)?,
            _ => self.operation()?.place(&chooser, request)?,
        };
        Ok(self.permit(placed, request.tokens))
    }

    /// Places a request by a load of the user's own, which is computed while no lane is entered: that code
    /// may end permits, route by another policy, or fork.
    fn place_by_custom(&self, load: &Load, chooser: &Chooser<'_>) -> Result<Placed, RouteError> {
        /// How often the user's code is called anew. It may itself change the engine that it is about to
        /// choose, at each call: then only remembered loads come to an end.
        const ASKED_ANEW: u32 = 16;
        if let Some(placed) = self.try_custom(load, chooser, ASKED_ANEW)? {
            return Ok(placed);
        }
        let load = load.remembering();
        loop {
            // Each load is asked for once at most, so in the end an attempt only fails because another
            // operation took effect: not a spin without bound.
            if let Some(placed) = self.try_custom(&load, chooser, u32::MAX)? {
                return Ok(placed);
            }
        }
    }

    /// Makes so many attempts. `None` if all of them were overtaken.
    fn try_custom(
        &self,
        load: &Load,
        chooser: &Chooser<'_>,
        attempts: u32,
    ) -> Result<Option<Placed>, RouteError> {
        let last_chosen = |engine| {
            // In a forked child, which is told so below, any number will do.
            Operation::begin(&self.membership).map_or(0, |mut lane| lane.last_chosen(engine))
        };
        let backoff = Backoff::new();
        for _ in 0..attempts {
            let choice = chooser.choose_by_custom(load, last_chosen);
            // After the choice: in a child that was forked in the middle of it this is where it ends.
            let mut operation = self.operation()?;
            let choice = choice.map_err(|no_choice| chooser.explain(no_choice, 1))?;
            if let Some(placed) = operation.place_chosen(chooser, choice)? {
                return Ok(Some(placed));
            }
            backoff.spin();
        }
        Ok(None)
    }

    fn place_all(&self, count: usize, request: &Request<'_>) -> Result<Vec<Permit>, RouteError> {
        if count == 0 {
            return self.operation().map(|_| Vec::new());
        }
        // Check first, so that a hopeless batch does not displace others. If a race uses up the room in between,
        // the permits that were collected are dropped.
        let chooser = Chooser::new(self.table(), &self.key, request);
        let has_room = chooser.check_room(count);
        if !self.membership.is_ours() {
            return Err(RouteError::Forked);
        }
        has_room?;
        (0..count).map(|_| self.place(request)).collect()
    }
}
