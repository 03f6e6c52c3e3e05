//! Exact in-flight counts, shared by every API-server process on a host.
//!
//! Many processes that route to the same engines map one table. It holds, for each engine, how many
//! requests are in flight, exactly, and the statistics that were last published of it. So all processes
//! route by the same counts, no stale update can overwrite them, and a process that is killed leaves
//! nothing behind.
//!
//! ```
//! # fn main() -> Result<(), headcount::Error> {
//! use headcount::{EngineStats, Request, Table};
//!
//! # let path = format!("/dev/shm/headcount-doc-{}", std::process::id());
//! let table = Table::options().engines(4).open_or_create(&path)?; // in every process
//! let frontend = table.join()?; // this process's place; its death gives it back
//!
//! let permit = frontend.route()?; // chosen and counted in one step
//! let engine = permit.engine(); // send the request there
//! drop(permit); // finished
//!
//! let permit = frontend.route_with(&Request::new().tokens(812).prefer(engine, 8))?;
//!
//! let mut publisher = table.publisher()?; // one process at a time
//! let stats = EngineStats::new().waiting(3).running(20).kv_usage(0.41);
//! publisher.publish(&[stats; 4])?;
//!
//! let view = table.view(); // all of it, for people and metrics
//! assert_eq!(view.engine(permit.engine()).map(|engine| engine.in_flight), Some(1));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(()) }
//! ```
//!
//! # In a server
//!
//! Every worker process opens the table and joins once, when it starts, and shares the [`Frontend`] among its
//! threads and tasks. `route` and dropping a permit take some tens of nanoseconds and never wait, so both may be
//! called in async code as they are. A permit may live over an `.await`, and a request that is cancelled drops
//! it. One process, the parent say, keeps a [`Reaper`].
//!
//! A handler answers at once if the table is [saturated](RouteError::Saturated), and so keeps no client waiting for
//! a place that may not come:
//!
//! ```no_run
//! use headcount::{EngineId, Frontend, Request, RouteError};
//!
//! async fn handle(frontend: &Frontend, prompt: &str) -> (u16, String) {
//!     let tokens = prompt.len() as u32 / 4;
//!     let permit = match frontend.route_with(&Request::new().tokens(tokens)) {
//!         Ok(permit) => permit,
//!         // Larger than the caps: to try again never helps.
//!         Err(error @ RouteError::Saturated { passes: false, .. }) => return (413, error.to_string()),
//!         // Full, or all engines down: with a `Retry-After`.
//!         Err(RouteError::Saturated { .. } | RouteError::Unavailable(_)) => return (503, "try again".into()),
//!         Err(error) => return (500, error.to_string()),
//!     };
//!     let answer = ask(permit.engine(), prompt).await;
//!     drop(permit); // finished; also if this future is dropped before
//!     answer
//! }
//! # async fn ask(engine: EngineId, prompt: &str) -> (u16, String) { unimplemented!() }
//! ```
//!
//! A server that would rather wait a moment tries again until a deadline, with a pause that grows. Nothing is
//! told when a place is free, and requests that wait so are served in no order:
//!
//! ```no_run
//! use headcount::{Frontend, Permit, Request, RouteError};
//! use std::time::Duration;
//! use tokio::time::{Instant, sleep};
//!
//! async fn route_until(frontend: &Frontend, request: &Request<'_>, end: Instant) -> Result<Permit, RouteError> {
//!     let mut pause = Duration::from_millis(1);
//!     loop {
//!         match frontend.route_with(request) {
//!             Err(RouteError::Saturated { passes: true, .. }) if Instant::now() < end => sleep(pause).await,
//!             result => return result,
//!         }
//!         pause = (pause * 2).min(Duration::from_millis(50));
//!     }
//! }
//! ```
//!
//! Each attempt that is refused counts in [`View::refusals_total`].
//!
//! # What is here
//!
//! - [`Table`]: the shared file; [`Options`] to create and open it, [`Engine`] to put into it, [`EngineId`] to
//!   find it again.
//! - [`Frontend`]: this process's place; [`Request`] and [`Policy`] say how it routes.
//! - [`Permit`]: one admitted request, counted until it is dropped.
//! - [`Publisher`]: puts [`EngineStats`] into the table; [`Table::read_stats`] reads them.
//! - [`Deployment`]: the one process that says which engines a table has; [`Table::apply`] brings a living table to
//!   other [`Options`], and [`Changes`] says what was changed.
//! - [`View`]: all of it, for people and metrics, with its [`Refusals`]; [`Dimensions`]: what never changes.
//! - [`Verification`]: whether all of it is consistent.
//! - [`Reaper`]: returns what dead processes held, in the background.
//! - [`PathState`]: whether the file still lies at its path, where other processes look for it.
//! - [`RouteError`]: why a request was not placed, by which [`Cap`]; [`Error`]: what else can go wrong.
//! - [`MAX_ENGINES`], [`MAX_FRONTENDS`], [`MAX_IN_FLIGHT`], [`MAX_NAME_LEN`]: the most that a table can hold.
//!
//! # What holds
//!
//! Counts are exact at every instant: those of permits that live, plus those of dead frontends that
//! were not reaped yet. `route` chooses and counts in one atomic step, caps are never exceeded, and
//! a process that is killed at any instruction blocks nobody and leaks nothing after a reap.
//! Routing, finishing, publishing and looking wait for no other process. Two things do, for a limited time:
//! opening waits up to 200 ms, and joining some tens, for a reap that another process has begun; and a
//! process that adds or removes an engine, or changes its weight or caps, waits up to five seconds for another
//! one that does ([`Error::Busy`]). In a process that forks, these calls wait for the forks of other threads,
//! 300 ms at a time. docs/contract.md has all rules, with their limits.

#[cfg(not(all(
    target_os = "linux",
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "headcount runs on Linux on x86-64 and (little-endian) aarch64 only: it needs open-file-description locks, MADV_WIPEONFORK and 64-bit atomics in shared memory"
);

#[cfg(loom)]
compile_error!(
    "a table cannot lie in loom's memory; the models of its algorithms are in loom-tests"
);

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The documentation shows the methods of `Table` in the order of these modules.
mod table;

mod frontend;

mod publication;

mod inspect;

mod algorithm;
mod error;
mod shm;

/// Threads may share each of these, and hand it on.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Table>();
    is_send_and_sync::<Frontend>();
    is_send_and_sync::<Permit>();
    is_send_and_sync::<Publisher>();
    is_send_and_sync::<Deployment>();
    is_send_and_sync::<Reaper>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<Policy>();
    is_send_and_sync::<Request<'_>>();
    is_send_and_sync::<View>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<RouteError>();
};

pub use error::{Cap, Difference, Error, Result, RouteError, Unavailable};
pub use frontend::{Candidate, Frontend, Permit, Policy, Request};
pub use inspect::{EngineView, Fault, FaultKind, FrontendView, SnapshotView, Verification, View};
pub use publication::{EngineStats, PackedEngineStats, PublicationHead, Publisher};
pub use table::{
    Changes, Deployment, Dimensions, Engine, EngineId, EngineSelector, EngineState, MAX_ENGINES,
    MAX_FRONTENDS, MAX_IN_FLIGHT, MAX_NAME_LEN, Options, PathState, Reaped, Reaper, Refusals,
    Table,
};
