//! Exact in-flight counts, shared by every API-server process on a host.
//!
//! Processes that route to the same engines map one table. For each engine it holds the exact number of requests
//! in flight, and the engine's last published statistics. So all processes route by the same counts, no stale
//! update overwrites them, and a process that is killed leaves nothing counted after the next reap.
//!
//! ```
//! # fn main() -> Result<(), headcount::Error> {
//! use headcount::{EngineStats, Request, Table};
//!
//! # let path = format!("/dev/shm/headcount-doc-{}", std::process::id());
//! let table = Table::options().engines(4).open_or_create(&path)?; // in every process
//! let frontend = table.join()?; // until it is dropped, or this process dies
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
//! # async fn ask(engine: EngineId, prompt: &str) -> (u16, String) { (200, format!("{engine:?} heard {prompt}")) }
//! ```
//!
//! A server that would rather have its clients wait gives the table a queue, with
//! [`max_waiting`](Options::max_waiting), and acquires a place. All processes have one queue, in which requests are served
//! in the order in which they came:
//!
//! ```no_run
//! use headcount::{AcquireError, Frontend, Permit, Request, RouteError};
//! use std::time::{Duration, Instant};
//!
//! async fn place(frontend: &Frontend, tokens: u32) -> Result<Permit, (u16, String)> {
//!     let request = Request::new().tokens(tokens).class(1).tenant("team-a");
//!     let deadline = Instant::now() + Duration::from_secs(30);
//!     // Dropped with this future when the client leaves: the request leaves the queue.
//!     frontend.acquire_async(&request, deadline).await.map_err(|error| match error {
//!         // With a `Retry-After`: `retry_after` of the first one.
//!         AcquireError::QueueFull { .. } | AcquireError::WaitedTooLong { .. } => (503, error.to_string()),
//!         AcquireError::Route(RouteError::Unavailable(_)) => (503, error.to_string()),
//!         AcquireError::Route(RouteError::Saturated { .. }) => (413, error.to_string()),
//!         _ => (500, error.to_string()),
//!     })
//! }
//! ```
//!
//! # Which call is it?
//!
//! | to | call |
//! |---|---|
//! | make or open a table | [`Table::options`], then [`open_or_create`](Options::open_or_create) in every process |
//! | pass a table to children | [`Table::pass_to`] in the parent, [`Options::inherited`] in the child |
//! | route in this process | [`Table::join`] once, then [`Frontend::route`] or [`route_with`](Frontend::route_with) for each request |
//! | wait for a place | [`Frontend::acquire`], [`Frontend::acquire_async`], [`acquire_many`](Frontend::acquire_many) for several at once, on a table with [`Options::max_waiting`] |
//! | place several requests or none | [`Frontend::route_many`] |
//! | keep a request counted | hold its [`Permit`]; drop it to finish the request |
//! | send a request to one engine, or keep it from some | [`Request::pin`], [`prefer`](Request::prefer), [`exclude`](Request::exclude) |
//! | choose by another load | [`Policy`], by [`Frontend::with_policy`] |
//! | tell all processes how busy engines are | [`Table::publisher`], then [`Publisher::publish`] |
//! | return the places of dead processes at once | [`Table::reap_every`] in the parent, or [`Table::reap`] |
//! | add, remove, drain or cap engines | [`Table::add`], [`remove`](Table::remove), [`drain`](Table::drain), [`set_caps`](Table::set_caps) |
//! | keep a table as a configuration says | [`Table::apply`], or [`Table::deploy`] and [`Deployment::apply`] |
//! | show it, or export metrics | [`Table::view`] |
//! | read statistics fast | [`Table::read_stats`] |
//! | find out whether a table is consistent | [`Table::verify`]; [`Table::dump`] for a bug report |
//!
//! Routing fails with [`RouteError`], which is small; all else with [`Error`].
//!
//! [`docs`] has the guarantees, the limits, the costs and the internals.

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

#[cfg(doctest)]
#[doc = include_str!("../docs/queue.md")]
struct QueuePage;

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

pub use error::{AcquireError, Cap, Difference, Error, Result, RouteError, Unavailable};
pub use frontend::{Acquire, AcquireMany, Candidate, Frontend, Permit, Policy, Request};
pub use inspect::{
    ClassView, EngineView, Fault, FaultKind, FrontendView, QueueView, SnapshotView, Verification,
    View, WaitedView,
};
pub use publication::{EngineStats, PackedEngineStats, PublicationHead, Publisher};
pub use table::{
    Changes, Deployment, Dimensions, Engine, EngineId, EngineSelector, EngineState, MAX_ENGINES,
    MAX_FRONTENDS, MAX_IN_FLIGHT, MAX_NAME_LEN, Options, PathState, Reaped, Reaper, Refusals,
    Table,
};

pub mod docs {
    //! Pages about the library as a whole: [guarantees], [limits], [performance] and [internals].

    pub mod guarantees {
        //! This page is docs/contract.md of the sources. Its links to other pages work there.
        #![doc = ""]
        #![doc = include_str!("../docs/contract.md")]
    }

    pub mod limits {
        //! The most that a table can hold, and the cases in which a call waits or a rule does not hold.
        //!
        //! # Sizes
        //!
        //! | of | most | |
        //! |---|---|---|
        //! | engines of a table | 4,096 | [`MAX_ENGINES`](crate::MAX_ENGINES); fixed at creation by [`max_engines`](crate::Options::max_engines) |
        //! | frontends of a table | 4,095 | [`MAX_FRONTENDS`](crate::MAX_FRONTENDS), for `max_frontends * (threads + 1)` lanes |
        //! | requests in flight on an engine | 1,048,575 | [`MAX_IN_FLIGHT`](crate::MAX_IN_FLIGHT) |
        //! | tokens in flight on an engine | 4,294,967,295 | then [`RouteError::Saturated`](crate::RouteError::Saturated) |
        //! | bytes of an engine's name | 232 | [`MAX_NAME_LEN`](crate::MAX_NAME_LEN) |
        //! | requests in a statistic | 131,071 | which stands for that and more |
        //!
        //! # Calls that wait
        //!
        //! Routing, finishing, publishing, [`view`](crate::Table::view) and
        //! [`read_stats`](crate::Table::read_stats) wait for no other process. These calls do, for a limited time:
        //!
        //! - Opening waits up to 200 ms, and joining some tens of milliseconds, for another process's reap.
        //! - A process that adds, removes or changes engines, or applies options, waits up to five seconds for
        //!   another one that does ([`Error::Busy`](crate::Error::Busy)).
        //! - In a process that forks, calls that open descriptors wait for the forks of other threads, 300 ms at
        //!   a time.
        //! - More threads than [`threads`](crate::Options::threads) share one lane of a frontend, and wait while
        //!   another thread has an operation in it.
        //! - Under a cap of the table, a request that finds room but for those being placed looks again for some
        //!   microseconds.
        //!
        //! # Platforms
        //!
        //! Linux on x86-64 and little-endian aarch64: the library needs open-file-description locks,
        //! `MADV_WIPEONFORK` and 64-bit atomics in shared memory. The file belongs on a tmpfs such as `/dev/shm`.
        //! All processes of a table run on one host, with one version of the file's format.
        //!
        //! # Trust
        //!
        //! A process that may write the file may write any counts into it. The library checks all that it reads for
        //! bounds, so a forged or damaged file cannot lead it out of its memory. A file that another program cuts
        //! short while it is mapped ends the process by SIGBUS; [`memfd`](crate::Options::memfd) seals its size.
    }

    pub mod performance {
        //! The costs of the main calls. docs/performance.md has figures, and how they were measured.
        //!
        //! | call | system calls | atomic read-modify-writes | loads |
        //! |---|---|---|---|
        //! | [`route`](crate::Frontend::route) | none | 1, without another process's interference | 1 or 2 for each engine |
        //! | the same under a cap of the table | none | 3 | 2 for each engine |
        //! | the same if all engines are at their caps | 1 for each living frontend, 100 times a second at most | | |
        //! | dropping a [`Permit`](crate::Permit) | none | 1, without another process's interference | |
        //! | [`publish`](crate::Publisher::publish) | none | none | 2 stores for each engine |
        //! | [`read_stats`](crate::Table::read_stats) | none | none | 1 for each engine |
        //! | [`Permit::engine`](crate::Permit::engine) | none | none | 2 |
        //! | [`view`](crate::Table::view) | 1 for each frontend | none | allocates |
        //! | [`join`](crate::Table::join) | some 25 | | |
        //! | [`reap`](crate::Table::reap) | 1 for each living frontend | | |
        //! | [`apply`](crate::Table::apply) | some 10 | 2 for each engine | |
        //!
        //! An attempt to place or finish a request fails only because another operation took effect on the same
        //! engine, and is made again: the calls are lock-free.
        //!
        //! Equal weights, no pressure on a KV cache and a request without a say take the fast way. Weights, pressure,
        //! [`pin`](crate::Request::pin), [`prefer`](crate::Request::prefer) and
        //! [`exclude`](crate::Request::exclude) take a slower one, which reads each engine's limits as well.
        //!
        //! `headcount bench` measures a host.
    }

    pub mod internals {
        //! This page is docs/architecture.md of the sources. Its links to other pages work there.
        #![doc = ""]
        #![doc = include_str!("../docs/architecture.md")]
    }
}
