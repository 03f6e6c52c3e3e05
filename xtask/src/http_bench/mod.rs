//! Puts `headcount-server`, nginx and HAProxy under the same load, in front of the same engines.

mod haproxy;
mod nginx;
mod processor;
mod queue;
mod stage;

use crate::step::{Failed, cargo};
use serde_json::Value;
use stage::{Stage, kill, wait_for};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

const ENGINES: usize = 4;
const WORKERS: usize = 4;
const CONNECTIONS: usize = 64;
/// So far above what the load needs that no request is refused.
const NO_CAP: usize = 4096;
/// The cap of an engine in the part that kills workers.
const CAP: usize = 8;
/// How long to wait for workers and engines; and after how long nginx gets a second chance, which is more than the
/// 10 s for which it shuns a server by default.
const PATIENCE: Duration = Duration::from_secs(20);
const SECOND_CHANCE: Duration = Duration::from_secs(15);

/// The front end between the clients and the engines.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Front {
    /// Clients take the engines in turn: the most that load and engines allow.
    None,
    Nginx,
    Haproxy,
    Headcount,
}

/// The other front ends.
#[derive(Debug)]
struct Programs {
    nginx: PathBuf,
    haproxy: Option<PathBuf>,
}

impl Front {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none (engines in turn)",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Headcount => "headcount-server",
        }
    }
}

/// What `cargo xtask http-bench` measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How many rounds, and how many seconds each load of a round lasts.
    pub(crate) rounds: usize,
    pub(crate) seconds: u64,
    /// The requests a second of the open loop.
    pub(crate) rate: usize,
    /// The requests a second at which processor time is measured.
    pub(crate) processor_rate: usize,
    /// What alone is to be measured.
    pub(crate) only: Option<Only>,
}

/// A part of the measurement.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Only {
    /// Processor time per request.
    Processor,
    /// Requests that wait.
    Queue,
}

/// Runs the plan and prints tables in Markdown.
pub(crate) fn run(plan: Plan) -> Result<(), Failed> {
    let nginx = nginx::find("nginx");
    let missing = || Failed("there is no nginx here; apt-get install nginx-light".to_owned());
    let programs = Programs {
        nginx: nginx.ok_or_else(missing)?,
        haproxy: nginx::find("haproxy"),
    };
    let build =
        "build --release --package headcount-server --package headcount-examples --bins --examples";
    cargo("the server and its load", build)
        .like_a_users_build()
        .run()?;
    let has = |part| plan.only.is_none_or(|only| only == part);
    if programs.haproxy.is_none() {
        eprintln!("xtask: there is no HAProxy here; apt-get install haproxy");
    }
    if plan.only.is_none() {
        loads(&programs, plan)?;
        kills(&programs)?;
    }
    if has(Only::Processor) {
        processor::run(&programs, plan.rounds, plan.seconds, plan.processor_rate)?;
    }
    if has(Only::Queue) {
        queue::run(&programs, plan.rounds)?;
    }
    Ok(())
}

fn loads(programs: &Programs, plan: Plan) -> Result<(), Failed> {
    let Plan {
        rounds,
        seconds,
        rate,
        ..
    } = plan;
    println!(
        "\n{ENGINES} mock engines (1 token a request, steps of 1 ms), {WORKERS} workers, medians of {rounds} rounds of {seconds} s.\n\
         {}, `least_conn`, `zone`, `max_conns`, keep-alive to the engines, no buffering.\n",
        nginx::version(&programs.nginx)?
    );
    println!(
        "| in front | closed, {CONNECTIONS} connections: requests/s (least to most) | p50 ms | p99 ms | open, {rate}/s: p50 ms | p99 ms | p99.9 ms | not answered with 200 | served by each engine, open |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let fronts = [Front::None, Front::Nginx, Front::Headcount];
    let mut measured = vec![Vec::new(); fronts.len()];
    for _ in 0..rounds {
        for (front, measured) in fronts.iter().zip(&mut measured) {
            measured.push(load(*front, programs, seconds, rate)?);
        }
    }
    for (front, measured) in fronts.iter().zip(&measured) {
        row(*front, measured);
    }
    Ok(())
}

fn kills(programs: &Programs) -> Result<(), Failed> {
    let full = ENGINES * CAP;
    println!(
        "\nAt the cap: {CAP} on each engine, {full} in all, held by streams; then workers are killed with SIGKILL.\n"
    );
    println!(
        "| in front | admitted of {} before | workers killed | admitted once new workers run and engines are idle | {} s later |",
        full + 8,
        SECOND_CHANCE.as_secs()
    );
    println!("|---|---|---|---|---|");
    for front in [Front::Nginx, Front::Headcount] {
        for killed in [2, WORKERS] {
            capacity(front, programs, killed)?;
        }
    }
    Ok(())
}

/// The results of one round with one front end.
#[derive(Clone, Debug)]
struct Round {
    closed: Value,
    open: Value,
    served: Vec<u64>,
}

fn load(front: Front, programs: &Programs, seconds: u64, rate: usize) -> Result<Round, Failed> {
    let stage = Stage::set(front, programs, NO_CAP, "0.001")?;
    let seconds = seconds.to_string();
    // To open connections, and to fill caches.
    stage.load(&["--seconds", "1"])?;
    let connections = CONNECTIONS.to_string();
    let closed = stage.load(&["--seconds", &seconds, "--connections", &connections])?;
    let before = stage.served()?;
    let open = stage.load(&["--seconds", &seconds, "--rate", &rate.to_string()])?;
    let after = stage.served()?;
    let served = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect();
    Ok(Round {
        closed,
        open,
        served,
    })
}

fn row(front: Front, rounds: &[Round]) {
    let median = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value));
    let field = |round: &Value, name: &str| round[name].as_f64().unwrap_or(f64::NAN);
    let closed = |name: &'static str| median(&|round| field(&round.closed, name));
    let open = |name: &'static str| median(&|round| field(&round.open, name));
    let rates = rounds
        .iter()
        .map(|round| field(&round.closed, "requests_per_second"));
    let least = rates.clone().fold(f64::INFINITY, f64::min);
    let most = rates.fold(0.0, f64::max);
    let bad: u64 = rounds
        .iter()
        .map(|r| not_fine(&r.closed) + not_fine(&r.open))
        .sum();
    let served: Vec<_> = rounds
        .last()
        .iter()
        .flat_map(|r| &r.served)
        .map(u64::to_string)
        .collect();
    println!(
        "| {} | {:.0} ({least:.0} to {most:.0}) | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {bad} | {} |",
        front.name(),
        closed("requests_per_second"),
        closed("p50_ms"),
        closed("p99_ms"),
        open("p50_ms"),
        open("p99_ms"),
        open("p999_ms"),
        served.join(" "),
    );
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The number of requests without an answer of status 200.
fn not_fine(result: &Value) -> u64 {
    let statuses = result["statuses"].as_object().into_iter().flatten();
    let other = statuses.filter(|(status, _)| *status != "200");
    let other: u64 = other.filter_map(|(_, count)| count.as_u64()).sum();
    let broken = ["failed", "unanswered"].map(|field| result[field].as_u64().unwrap_or(0));
    other + broken.iter().sum::<u64>()
}

/// Prints how many requests are admitted before workers that hold requests at the cap are killed, and after.
fn capacity(front: Front, programs: &Programs, killed: usize) -> Result<(), Failed> {
    let stage = Stage::set(front, programs, CAP, "0.1")?;
    let asked = ENGINES * CAP + 8;
    let (before, held) = stage.admitted(asked)?;
    let workers = stage.workers()?;
    for worker in &workers[..killed] {
        kill(*worker)?;
    }
    wait_for("new workers", || {
        let now = stage.workers()?;
        let old = &workers[..killed];
        Ok(now.len() == WORKERS && !now.iter().any(|worker| old.contains(worker)))
    })?;
    drop(held);
    wait_for("the engines to be idle", || {
        let running = stage.stats("running")?;
        Ok(running.iter().sum::<u64>() == 0)
    })?;
    let (after, held) = stage.admitted(asked)?;
    drop(held);
    thread::sleep(SECOND_CHANCE);
    let (later, _held) = stage.admitted(asked)?;
    println!(
        "| {} | {before} | {killed} of {WORKERS} | {after} | {later} |",
        front.name()
    );
    Ok(())
}

fn failed(doing: &str, why: &dyn std::fmt::Display) -> Failed {
    Failed(format!("{doing}: {why}"))
}
