//! Requests that wait for a place: what an actor is asked to acquire, and what comes of it.

use crate::{Actor, Task, eventually, monotonic_ns};
use headcount::{AcquireError, EngineId, Permit, Request, Table};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A request as a test and its actors exchange it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[must_use = "an actor acquires it"]
pub struct Ask {
    class: u8,
    tokens: u32,
    tenant: Option<(String, u32)>,
    pin: Option<usize>,
    excluded: Option<usize>,
}

impl Ask {
    /// A request of class 0 without tokens that may go anywhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets its class.
    pub fn class(self, class: u8) -> Self {
        Self { class, ..self }
    }

    /// Sets its tokens.
    pub fn tokens(self, tokens: u32) -> Self {
        Self { tokens, ..self }
    }

    /// Names its tenant, and that one's share.
    pub fn tenant(self, name: &str, share: u32) -> Self {
        let tenant = Some((name.to_owned(), share));
        Self { tenant, ..self }
    }

    /// Lets it go to the engine of this number only.
    pub fn pin(self, engine: usize) -> Self {
        let pin = Some(engine);
        Self { pin, ..self }
    }

    /// Keeps it from the engine of this number.
    pub fn exclude(self, engine: usize) -> Self {
        let excluded = Some(engine);
        Self { excluded, ..self }
    }

    /// Hands it on as a request.
    pub fn with<T>(&self, table: &Table, act: impl FnOnce(&Request<'_>) -> T) -> T {
        let excluded: Vec<EngineId> = (self.excluded.into_iter())
            .filter_map(|engine| table.engine_at(engine))
            .collect();
        let request = Request::new().class(self.class).tokens(self.tokens);
        let request = match &self.tenant {
            Some((name, share)) => request.tenant(name).share(*share),
            None => request,
        };
        let request = self.pin.map_or(request, |engine| request.pin(engine));
        act(&request.exclude(&excluded))
    }
}

/// What became of a request that was to wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waited {
    /// The number of the engine that it went to, or why it went nowhere.
    pub outcome: Result<usize, Refused>,
    /// When the call began, by [`monotonic_ns`].
    pub start: u64,
    /// When it returned.
    pub end: u64,
    /// The processor time that its process used meanwhile, in nanoseconds.
    pub busy: u64,
}

/// Why a request has not got a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refused {
    /// The queue was full: the class that was, and when to try again.
    Full(Option<u8>, Option<Duration>),
    /// It has waited for that long.
    TooLong(Duration),
    /// Another error, in its debug form.
    Other(String),
}

impl Waited {
    /// Calls `acquire`, and notes what comes of it.
    pub fn by(acquire: impl FnOnce() -> Result<Permit, AcquireError>) -> (Self, Option<Permit>) {
        let (start, busy) = (monotonic_ns(), busy_ns());
        let acquired = acquire();
        let (end, busy) = (monotonic_ns(), busy_ns() - busy);
        let outcome = match &acquired {
            Ok(permit) => Ok(permit.engine().index()),
            Err(AcquireError::QueueFull { class, retry_after }) => {
                Err(Refused::Full(*class, *retry_after))
            }
            Err(AcquireError::WaitedTooLong { waited }) => Err(Refused::TooLong(*waited)),
            Err(error) => Err(Refused::Other(format!("{error:?}"))),
        };
        let waited = Self {
            outcome,
            start,
            end,
            busy,
        };
        (waited, acquired.ok())
    }

    /// How long the call took.
    pub fn took(&self) -> Duration {
        Duration::from_nanos(self.end - self.start)
    }

    /// How long after a moment the call returned.
    pub fn after(&self, moment: u64) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(moment))
    }

    /// Whether the queue was full.
    pub fn is_full(&self) -> bool {
        matches!(self.outcome, Err(Refused::Full(..)))
    }

    /// Whether its time was over.
    pub fn is_too_long(&self) -> bool {
        matches!(self.outcome, Err(Refused::TooLong(_)))
    }
}

/// The processor time that this process has used, in nanoseconds.
fn busy_ns() -> u64 {
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the time only; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// How many requests wait.
pub fn waiting(table: &Table) -> u32 {
    let queue = table.view().queue;
    queue.map_or(0, |queue| queue.classes.iter().map(|c| c.waiting).sum())
}

/// How long the tests let a request wait that is to get a place.
const LONG: u64 = 60_000;

impl Actor {
    /// Has the actor acquire a place for a request, and returns when the request waits. The actor keeps the permit;
    /// [`answer`](Self::answer) is a [`Waited`].
    pub fn begins_to_wait(&mut self, table: &Table, ask: Ask) {
        self.begins_to_wait_for(table, ask, LONG);
    }

    /// The same, for at most so many milliseconds.
    pub fn begins_to_wait_for(&mut self, table: &Table, ask: Ask, milliseconds: u64) {
        let before = waiting(table);
        self.tell(&Task::Acquire { ask, milliseconds });
        eventually("a request that waits", || waiting(table) > before);
    }

    /// Acquires a place for a request within so many milliseconds, and keeps the permit.
    pub fn acquire(&mut self, ask: Ask, milliseconds: u64) -> Waited {
        self.tell(&Task::Acquire { ask, milliseconds });
        self.answer()
    }

    /// Whether the request that the actor has begun to wait for has a place. Takes the answer then.
    pub fn is_served(&mut self) -> bool {
        let mut answered = libc::pollfd {
            fd: self.output_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: reads and writes this one structure, and does not wait.
        let ready = unsafe { libc::poll(&raw mut answered, 1, 0) };
        ready == 1 && self.answer::<Waited>().outcome.is_ok()
    }

    /// Finishes the oldest request. Returns when it began to.
    pub fn finish_one(&mut self) -> u64 {
        self.tell(&Task::FinishOne);
        self.answer()
    }
}
