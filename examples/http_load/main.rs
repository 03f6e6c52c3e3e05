//! Load for HTTP servers, in a closed loop or an open one, and what came of it.
//!
//! ```text
//! cargo run --release --example http_load -- --url http://127.0.0.1:8000/ --connections 64
//! cargo run --release --example http_load -- --url http://127.0.0.1:8000/ --rate 1000
//! ```
//!
//! In a *closed* loop each connection sends its next request when it has the answer to the last: this
//! shows how much a server can do, and hides how long requests would have waited, since a server
//! that is slow is asked less. In an *open* loop requests come at random times (a Poisson process) at
//! the rate that was asked for, whatever the server does, and a request's time counts from the moment
//! at which it was due, so a pause of the server counts for all that fell into it.

mod connection;
mod tally;

use crate::connection::{Connections, Target};
use crate::tally::Tally;
use clap::{Parser, value_parser};
use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep_until, timeout};

/// Puts an HTTP server under load.
#[derive(Debug, Parser)]
#[command(name = "http_load")]
struct Options {
    /// What to ask for; with several, connections and requests are dealt out in turn
    #[arg(long = "url", value_name = "URL", required = true)]
    urls: Vec<Target>,

    /// The body of each request
    #[arg(long, value_name = "JSON", default_value = "{\"max_tokens\":1}")]
    body: String,

    /// Connections of a closed loop, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000))]
    connections: u32,

    /// Requests a second of an open loop, 1 to 1000000, instead of a closed one
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,

    /// How long to send requests, in seconds, 1 to 3600
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// How long the last requests may take after the time is over.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start the event loop: {error}");
            return ExitCode::FAILURE;
        }
    };
    let seconds = options.seconds;
    let json = options.json;
    let tally = LocalSet::new().block_on(&runtime, run(Rc::new(options)));
    let summary = tally.summary(seconds);
    match json {
        true => println!("{summary}"),
        false => println!("{summary:#}"),
    }
    ExitCode::SUCCESS
}

async fn run(options: Rc<Options>) -> Tally {
    let tally = Rc::new(RefCell::new(Tally::default()));
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut requests = JoinSet::new();
    match options.rate {
        None => {
            for number in 0..options.connections as usize {
                requests.spawn_local(closed(number, end, Rc::clone(&options), Rc::clone(&tally)));
            }
        }
        Some(rate) => open(rate, end, &options, &tally, &mut requests).await,
    }
    let rest = async { while requests.join_next().await.is_some() {} };
    let left = end.saturating_duration_since(Instant::now()) + PATIENCE;
    if timeout(left, rest).await.is_err() {
        tally.borrow_mut().unanswered += requests.len() as u64;
    }
    tally.take()
}

async fn closed(number: usize, end: Instant, options: Rc<Options>, tally: Rc<RefCell<Tally>>) {
    let connections = Connections::to(&options.urls[number % options.urls.len()]);
    while Instant::now() < end {
        let due = Instant::now();
        let answer = connections.ask(&options.body).await;
        tally.borrow_mut().add(answer, due.elapsed());
    }
}

async fn open(
    rate: u32,
    end: Instant,
    options: &Rc<Options>,
    tally: &Rc<RefCell<Tally>>,
    requests: &mut JoinSet<()>,
) {
    let targets: Vec<_> = options
        .urls
        .iter()
        .map(|url| Rc::new(Connections::to(url)))
        .collect();
    let mut due = Instant::now();
    let random = Random(Cell::new(due.elapsed().as_nanos() as u64 ^ u64::from(rate)));
    for number in 0.. {
        // The times between arrivals of a Poisson process are exponentially distributed.
        due += Duration::from_secs_f64(-random.above_zero().ln() / f64::from(rate));
        if due >= end {
            return;
        }
        sleep_until(due).await;
        let connections = Rc::clone(&targets[number % targets.len()]);
        let (options, tally) = (Rc::clone(options), Rc::clone(tally));
        requests.spawn_local(async move {
            let answer = connections.ask(&options.body).await;
            tally.borrow_mut().add(answer, due.elapsed());
        });
        // So that what has finished does not pile up.
        while requests.try_join_next().is_some() {}
    }
}

/// A splitmix64 generator.
#[derive(Debug)]
struct Random(Cell<u64>);

impl Random {
    /// A number above 0, at most 1.
    fn above_zero(&self) -> f64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = self.0.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}
