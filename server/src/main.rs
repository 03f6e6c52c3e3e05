//! API servers in front of LLM engines: several processes on one port, which route by one table.
//!
//! ```text
//! cargo run --release -p headcount-server -- --listen 127.0.0.1:8000 --workers 4 \
//!     --engine http://127.0.0.1:9001 --engine http://127.0.0.1:9002
//! ```
//!
//! Without engines it starts four mock engines of its own, so that `cargo run --release
//! -p headcount-server` alone shows everything. docs/server.md has the settings and the limits.
//!
//! ```text
//!                    ┌──▶ worker ──┐         one listening socket, inherited by all workers:
//!   clients ─────────┼──▶ worker ──┼──▶      what a dead one had not accepted goes to the others
//!                    └──▶ worker ──┘
//!                            ▲ │        engines (any server that speaks HTTP/1.1)
//!              starts again, │ ▼ counts      ▲
//!              reaps for     │ table         │ probes those that are down
//!                          parent ───────────┘
//! ```
//!
//! - `parent`: keeps its `workers`, reaps what they held, brings engines back (`probe`), and holds the table's
//!   deployment lock, under which it applies the list of engines (`engine_list`). It never touches a request.
//! - `worker`: accepts a `client`, and hands each request to `proxy`. That checks its `framing`, holds the
//!   `upload` until it is there, reads of the `prompt` what an engine will run, takes `places` for that
//!   at one that has `room`, sends the request over an `exchange` with it, and answers with an `answer`, the
//!   body that owns the places.
//! - `dial` opens connections to engines, at the addresses that `resolve` finds for their names; on each, a `wire`
//!   watches whether its engine is there, and answers.
//! - `connection` limits how long a client is silent, `descriptors` how many clients there are, and `linger` sees
//!   to it that the last bytes get to one whose connection is closed. A `record` of each request goes into the
//!   `counters` of all workers, and the access log.
//! - `table_path`: says so when the table's file is removed or replaced. Parent and workers have the
//!   table by its descriptor, so that they stay in one.
//! - Workers have no list of engines: an engine's name in the table is its address.

mod address;
mod affinity;
mod answer;
mod child;
mod client;
mod configuration;
mod connection;
mod count;
mod counters;
mod descriptors;
mod dial;
mod engine_client;
mod engine_list;
mod error;
mod error_response;
mod framing;
mod headers;
mod idle_timeout;
mod json;
mod keepalive;
mod linger;
mod listener;
mod log;
mod mock_engine;
mod openai;
mod options;
mod parent;
mod places;
mod probe;
mod prompt;
mod proxy;
mod record;
mod resolve;
mod room;
mod shutdown;
mod status;
mod systemd;
mod table_path;
mod upload;
mod wire;
mod worker;
mod workers;

use crate::error::Error;
use crate::options::Options;
use clap::Parser;
use std::future::Future;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::parse();
    descriptors::raise();
    let result = match (options.mock_engine, options.inherited()) {
        (Some(address), _) => run(mock_engine::serve(address, options)),
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

/// Every process has one thread, but for those that write its lines: more of them are more workers.
fn run(task: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::system("start the event loop", source))?;
    let result = runtime.block_on(task);
    // A resolver that does not answer keeps a thread, and shall not keep the process.
    runtime.shutdown_background();
    result
}
