//! Bursts of requests through a small data-parallel deployment, under four ways to choose an
//! engine.
//!
//! ```text
//! cargo run --release --example burst
//! ```
//!
//! The program starts itself again as real processes: P frontends, E engines and one coordinator,
//! joined by Unix sockets.
//!
//! ```text
//!                  requests                  requests
//!   clients ─────────────────▶ P frontends ─────────────────▶ E engines
//!   (this process)                  ▲                             │
//!                      every 100 ms │    waiting, running, KV     │ after each step
//!                                   └──────── coordinator ◀───────┘
//! ```
//!
//! An engine decodes in steps of 20 ms, one token a step for each request of its batch. Requests
//! that arrive during a step are taken in when it ends, so the figures that it reports then do not
//! show them yet. The coordinator broadcasts the last figures of all engines. Every strategy gets
//! the same arrivals at the same frontends, and the same broadcast.
//!
//! # The strategies
//!
//! - `overwrite` is vLLM's `DPLBAsyncMPClient` from mid-2025 to mid-2026: score `4 * waiting +
//!   running` over a local copy, in which `waiting` grows by the number of API servers with each
//!   request sent (vLLM pull request 21617) and which every broadcast of the coordinator replaces
//!   whole. The scan for the lowest score starts at a place that differs between the servers and
//!   never moves.
//! - `scaled` is the same class since July 2026 (pull requests 47420, 49204): the load is the
//!   larger of the snapshot's `waiting + running` and the server's own in-flight count times the
//!   number of servers, plus a penalty for a queue on an engine whose KV cache is more than half
//!   full; the start of the scan moves on by one with each request. The own count is exact, the
//!   multiplication is a guess.
//! - `floor` is the vLLM Rust frontend of mid-2026: the larger of its own in-flight count and the
//!   snapshot's `waiting + running`, plus `3 * waiting`; ties go to the lowest rank. In the field
//!   it is one process for all engines, and takes the figures from the outputs of every step. Here
//!   it gets the same broadcast as the others, and as many processes: `--frontends 1` shows it as
//!   it is meant, the default shows what several of them do to each other.
//! - `shared` is one counter an engine in shared memory, which all frontends add to and subtract from, as
//!   nginx keeps it for an upstream with `zone`, `least_conn` and `max_conns`. It is exact until a process is
//!   killed. Not among those that are compared by default: it splits bursts as evenly as `headcount`.
//! - `headcount` is this library: the frontends count in one table in shared memory. One of them
//!   (the first to ask) publishes the very broadcast that the others received as well.
//! - `headcount-queue` is the same with a queue: a request that finds no place waits for one, in one order over
//!   all frontends.
//!
//! # Caps and kills
//!
//! With `--cap` each engine may have so many requests in flight, and a quarter more clients than there are
//! places send requests one after the other. Every 0.8 s a frontend gets SIGKILL: its clients send again
//! through the others, and a new frontend is started at once. `shared` loses the places of each dead frontend.
//! With `headcount` the other frontends, or the parent, reap them.
//!
//! With `--cap` and `--queue` no frontend is killed. Bursts come of three times as many requests as there are places,
//! and the clients of requests that are refused (`headcount`) try again every 30 ms. With `headcount-queue` they
//! wait in the table's queue.
//!
//! # What is simplified
//!
//! Prefill takes no time of its own, steps have a fixed length whatever the batch, and engines do
//! not wait for each other. Engines report after a step, as vLLM's did until May 2026; since then
//! they report before it as well (pull request 41626), which changes the figures of the first three
//! strategies, not their kind. All of it is the same for every strategy.
//!
//! The requests of a burst arrive at random times in a window, on connections that are spread over
//! the frontends by chance, as a kernel does it that hashes addresses. A trace is dealt out in
//! turn.
//!
//! # The figures
//!
//! `per_engine` is the number of requests that each engine received in a round, from the engines' own
//! logs. A burst's requests outlive the time in which it is submitted, so a split is also the batch
//! that the engine then decodes. With `--kill`, the engines abort the requests of the killed frontend,
//! its clients send them again through the others, and each counts once, where it ran.
//!
//! `leaked` is the number of requests that are still counted when all are answered. For `headcount`
//! the table is asked, after a reap; for `shared`, its counters. For the others the living frontends
//! are asked for the requests that they still wait for. A private count dies with its process: such a
//! strategy cannot leak, and the price is that no other process knew the count.

mod arrivals;
mod cap;
mod chart;
mod clock;
mod deployment;
mod error;
mod inbox;
mod interrupt;
mod kill;
mod options;
mod padding;
mod play;
mod process;
mod progress;
mod report;
mod roles;
mod run;
mod scratch;
mod strategy;
mod table;
mod timeline;
mod trace;
mod waiting;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use crate::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(assignment) = options.role {
        return roles::run(assignment);
    }
    match run::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
