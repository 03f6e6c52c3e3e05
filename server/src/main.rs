//! `headcount-server`: an HTTP front end for LLM engines. Several processes serve one port, and route by
//! one table.
//!
//! ```text
//! headcount-server --listen 127.0.0.1:8000 --workers 4 \
//!     --engine http://127.0.0.1:9001 --engine http://127.0.0.1:9002
//! ```
//!
//! Without engines it starts four mock engines of its own. docs/server.md has the settings and the limits.
//!
//! ```text
//!                    ┌──▶ worker ──┐
//!   clients ─────────┼──▶ worker ──┼──▶ engines (any server that speaks HTTP/1.1)
//!     one listening  └──▶ worker ──┘      ▲
//!     socket, which all      ▲ │          │
//!     workers inherit        │ ▼ counts   │ probes engines
//!            starts workers, │ table      │ that are down
//!            reaps dead ones │            │
//!                          parent ────────┘
//! ```
//!
//! The processes, each a room:
//!
//! - `parent`: starts the `workers` and starts them again, reaps what dead ones left, applies the
//!   `engine_list` to the table, brings engines up again (`probe`), and logs what other processes do to the
//!   table (`outside_changes`) and to its file (`table_path`). It never touches a request.
//! - `worker`: serves clients. Its `proxy` passes each request on; a `response_body` carries the answer,
//!   and owns the permits of the request until the last byte.
//! - `mock`: an engine that decodes nothing, at the pace of one that does.
//!
//! A request on its way through a worker meets these rooms, in this order:
//!
//! - `client`: an `acceptor` takes the connection, as far as there are `descriptors`; `silence` limits how
//!   long the client may say nothing; `linger` ends the connection so that the last bytes arrive.
//! - `message`: `framing` checks where the message ends, `upload` collects its body, `headers` says which
//!   fields are passed on, `error_response` is an answer without an engine.
//! - `route`: `prompt` reads from the body how much an engine will run, `affinity` prefers an engine with a
//!   warm cache, `room` looks for room, `permits` takes it. If there is a queue, a request is `waiting` for it, with
//!   the `standing` that its head or its `tenants` give it.
//! - `engine`: `engine_client` sends the request over an open connection, or has `dial` open one at an
//!   address that `resolve` finds. Workers have no list of engines: an engine's name in the table is its
//!   `address`.
//! - `report`: `record` notes the request in the `counters` of all workers and in the access log; `pages`
//!   shows health and metrics.
//!
//! `process` has what all processes share: how to start a child, and how to learn that the end has come.

mod client;
mod engine;
mod error;
mod keepalive;
mod list_file;
mod log;
mod message;
mod mock;
mod options;
mod parent;
mod process;
mod report;
mod route;
mod worker;

use crate::error::Error;
use crate::options::Options;
use clap::Parser;
use headcount_metrics::{is_unprintable, printable};
use std::future::Future;
use std::process::ExitCode;

/// Takes less processor time than the C library's: about a tenth of what a request costs in user mode.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return complain_of_arguments(&error),
    };
    client::descriptors::raise();
    let result = match (options.mock_engine, options.inherited()) {
        (Some(address), _) => run(mock::serve(address, options)),
        (None, Some(inherited)) => run(worker::serve(inherited, options)),
        (None, None) => run(parent::serve(options)),
    };
    let code = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::say(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    };
    log::finish();
    code
}

/// Runs a process on one thread, apart from the threads that write its log lines. More workers are the way to
/// more threads.
fn run(task: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::system("start the event loop", source))?;
    let result = runtime.block_on(task);
    // A resolver that does not answer occupies a thread. It must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// Reports wrong arguments in the words of clap, without characters on which a terminal acts.
fn complain_of_arguments(error: &clap::Error) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    // The error repeats the arguments.
    let mut arguments = std::env::args_os();
    if !arguments.any(|word| word.to_string_lossy().contains(is_unprintable)) {
        // If this fails, there is no place left to report it.
        drop(error.print());
        return code;
    }
    let plain = error.render().to_string();
    plain
        .lines()
        .for_each(|line| eprintln!("{}", printable(line)));
    code
}
