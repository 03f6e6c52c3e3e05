//! The table as JSON. [`DESCRIPTION`] and docs/cli.md describe it, and must agree.

use crate::failure::Failure;
use crate::observed::Observed;
use crate::output::printable_json;
use crate::queue::waiting;
use crate::warning::Warning;
use headcount::{ClassView, EngineView, FrontendView, QueueView};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

/// Grows when a field changes its meaning or goes away, and not when one is added.
const SCHEMA: u32 = 1;

/// Describes the object in the help of the command.
pub(crate) const DESCRIPTION: &str = "\
JSON: one object. null stands for none, or not known. Fields may be added;
`schema` grows when one changes its meaning or goes away.

  schema      1
  path        the table
  in_flight   requests in flight on all engines
  spread      the most loaded active engine less the least, in requests for
              each unit of weight
  engines     of each: index, name, state (active, draining, down, or leaving:
              removed with requests in flight), weight, in_flight, share (of
              all that is in flight, 0 to 1), tokens (in flight),
              max_in_flight and max_tokens (its caps), admitted_total and
              finished_total (since it was added), stats (as published last:
              waiting, running, kv_usage from 0 to 1, and sampled_in_flight,
              what was counted then)
  frontends   of each: slot, pid, alive, in_flight, tokens, joined_at (seconds
              of the Unix epoch), waiting (its requests that wait for a place)
  publisher   its pid
  deployment  the pid of the process that decides on the engines
  refusals_total
              calls refused since the table was created: engine_requests,
              engine_tokens (each engine was at that cap), table_requests,
              table_tokens (the table was), unavailable (each engine was down,
              draining or excluded)
  queue       null if the table has none: waiting (requests, of all classes),
              max_waiting, share_tokens (whether tenants share these and not
              requests), classes (of 0 to 3: waiting, max_waiting and
              oldest_seconds, for how long the first one has waited), waited
              (of those that got a place after waiting, since the table was
              created: served_total, seconds_total, p50_seconds and
              p99_seconds, the bound of the range that these are in, null above
              60), and requests refused_total, timed_out_total, cancelled_total
  snapshot    age_seconds, stale (older than --stale-after), words (the
              publisher's own two)
  table       format, size (bytes), mode, max_engines, max_frontends and threads
              (what there is room for), max_in_flight and max_tokens (the caps
              of all engines together)
  warnings    of each: kind, message, and what the kind has besides";

#[derive(Serialize)]
struct Shown<'a> {
    schema: u32,
    path: String,
    in_flight: u64,
    spread: Option<f64>,
    engines: Vec<Engine<'a>>,
    frontends: Vec<Frontend>,
    publisher: Option<Process>,
    deployment: Option<Process>,
    refusals_total: BTreeMap<&'static str, u64>,
    queue: Option<Queue>,
    snapshot: Option<Snapshot>,
    table: Dimensions,
    warnings: Vec<Warned<'a>>,
}

#[derive(Serialize)]
struct Engine<'a> {
    index: usize,
    name: &'a str,
    state: &'static str,
    weight: f32,
    in_flight: u32,
    share: Option<f64>,
    tokens: u32,
    max_in_flight: Option<u32>,
    max_tokens: Option<u32>,
    admitted_total: u64,
    finished_total: u64,
    stats: Option<Stats>,
}

#[derive(Serialize)]
struct Stats {
    waiting: u32,
    running: u32,
    kv_usage: f32,
    sampled_in_flight: Option<u32>,
}

#[derive(Serialize)]
struct Frontend {
    slot: usize,
    pid: u32,
    alive: bool,
    in_flight: u64,
    tokens: u64,
    waiting: u64,
    joined_at: f64,
}

#[derive(Serialize)]
struct Queue {
    waiting: u64,
    max_waiting: u32,
    share_tokens: bool,
    classes: Vec<Class>,
    waited: Waited,
    refused_total: u64,
    timed_out_total: u64,
    cancelled_total: u64,
}

#[derive(Serialize)]
struct Class {
    waiting: u32,
    max_waiting: Option<u32>,
    oldest_seconds: Option<f64>,
}

#[derive(Serialize)]
struct Waited {
    served_total: u64,
    seconds_total: f64,
    p50_seconds: Option<f64>,
    p99_seconds: Option<f64>,
}

#[derive(Serialize)]
struct Process {
    pid: u32,
}

#[derive(Serialize)]
struct Snapshot {
    age_seconds: f64,
    stale: bool,
    words: [u64; 2],
}

#[derive(Serialize)]
struct Dimensions {
    format: u32,
    size: u64,
    mode: String,
    max_engines: usize,
    max_frontends: usize,
    threads: usize,
    max_in_flight: Option<u32>,
    max_tokens: Option<u32>,
}

#[derive(Serialize)]
struct Warned<'a> {
    #[serde(flatten)]
    warning: &'a Warning,
    message: String,
}

/// Writes one JSON object, over several lines or on one, and the end of a line.
pub(crate) fn to_json(observed: &Observed, pretty: bool) -> Result<String, Failure> {
    let view = &observed.view;
    let (dimensions, in_flight) = (&observed.dimensions, observed.in_flight());
    let shown = Shown {
        schema: SCHEMA,
        path: observed.path.display().to_string(),
        in_flight,
        spread: observed.spread(),
        engines: view.engines.iter().map(|e| engine(e, in_flight)).collect(),
        frontends: view.frontends.iter().map(frontend).collect(),
        publisher: view.publisher.map(|pid| Process { pid }),
        deployment: view.deployment.map(|pid| Process { pid }),
        refusals_total: view.refusals_total.by_reason().into_iter().collect(),
        queue: view.queue.as_ref().map(queue),
        snapshot: view.snapshot.map(|snapshot| Snapshot {
            age_seconds: snapshot.age.as_secs_f64(),
            stale: observed.is_stale(),
            words: snapshot.words,
        }),
        table: Dimensions {
            format: dimensions.format,
            size: dimensions.size,
            mode: format!("{:04o}", dimensions.mode),
            max_engines: dimensions.max_engines,
            max_frontends: dimensions.max_frontends,
            threads: dimensions.threads,
            max_in_flight: view.max_in_flight,
            max_tokens: view.max_tokens,
        },
        warnings: (observed.warnings.iter())
            .map(|warning| Warned {
                warning,
                message: warning.to_string(),
            })
            .collect(),
    };
    let json = if pretty {
        serde_json::to_string_pretty(&shown)
    } else {
        serde_json::to_string(&shown)
    };
    json.map(|json| printable_json(&json) + "\n")
        .map_err(|error| Failure::failed(format!("writing JSON: {error}; report this")))
}

fn engine(engine: &EngineView, all: u64) -> Engine<'_> {
    Engine {
        index: engine.id.index(),
        name: &engine.name,
        state: engine.state.name(),
        weight: engine.weight,
        in_flight: engine.in_flight,
        share: (all > 0).then(|| f64::from(engine.in_flight) / all as f64),
        tokens: engine.tokens,
        max_in_flight: engine.max_in_flight,
        max_tokens: engine.max_tokens,
        admitted_total: engine.admitted_total,
        finished_total: engine.finished_total,
        stats: engine.stats.map(|stats| Stats {
            waiting: stats.waiting,
            running: stats.running,
            kv_usage: stats.kv_usage,
            sampled_in_flight: stats.in_flight,
        }),
    }
}

fn queue(queue: &QueueView) -> Queue {
    let class = |class: &ClassView| Class {
        waiting: class.waiting,
        max_waiting: class.max_waiting,
        oldest_seconds: class.oldest.map(|age| age.as_secs_f64()),
    };
    let quantile = |share| queue.waited.quantile(share).map(|time| time.as_secs_f64());
    Queue {
        waiting: waiting(queue),
        max_waiting: queue.max_waiting,
        share_tokens: queue.share_tokens,
        classes: queue.classes.iter().map(class).collect(),
        waited: Waited {
            served_total: queue.waited.count(),
            seconds_total: queue.waited.sum.as_secs_f64(),
            p50_seconds: quantile(0.5),
            p99_seconds: quantile(0.99),
        },
        refused_total: queue.refused_total,
        timed_out_total: queue.timed_out_total,
        cancelled_total: queue.cancelled_total,
    }
}

fn frontend(frontend: &FrontendView) -> Frontend {
    let since = frontend.joined_at.duration_since(UNIX_EPOCH);
    Frontend {
        slot: frontend.slot,
        pid: frontend.pid,
        alive: frontend.alive,
        in_flight: frontend.in_flight,
        tokens: frontend.tokens,
        waiting: frontend.waiting,
        joined_at: since.map_or(0.0, |since| since.as_secs_f64()),
    }
}
