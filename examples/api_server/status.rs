//! `/health`, `/live` and `/metrics`: any worker answers for the whole deployment.

use crate::proxy::Reply;
use crate::refusal::{json, text};
use crate::table_path;
use crate::worker::Worker;
use headcount::{EngineState, EngineView};
use hyper::{Response, StatusCode};
use std::fmt::Write;

/// What answers at a path of ours.
pub(crate) fn page(path: &str) -> Option<fn(&Worker) -> Response<Reply>> {
    match path {
        "/health" => Some(health),
        "/live" => Some(live),
        "/metrics" => Some(metrics),
        _ => None,
    }
}

/// 200 as long as this process works, whatever the engines do: one who restarts what is not alive has no
/// reason to do so.
fn live(_: &Worker) -> Response<Reply> {
    json(StatusCode::OK, &serde_json::json!({"status": "alive"}))
}

/// 200 if there is an engine that takes requests and this deployment is to have more of them, else 503; in any
/// case with all engines that there are.
fn health(worker: &Worker) -> Response<Reply> {
    let view = worker.table.snapshot();
    let has_engine = view.engines.iter().any(|e| e.state == EngineState::Active);
    let is_well = has_engine && !worker.is_draining();
    let engines = view.engines.iter().map(|engine| {
        serde_json::json!({
            "name": engine.name,
            "state": state(engine),
            "in_flight": engine.in_flight,
        })
    });
    let content = serde_json::json!({
        "status": match () {
            () if worker.is_draining() => "draining",
            () if has_engine => "ok",
            () => "no engine",
        },
        "table": table_path::name(&worker.table),
        "workers": view.frontends.iter().filter(|f| f.alive).count(),
        "engines": engines.collect::<Vec<_>>(),
    });
    let status = match is_well {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    json(status, &content)
}

/// What is told of each engine: a name as `headcount metrics` has it, whether it is a gauge or a
/// counter, what it means, and its value.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&EngineView) -> Option<f64>,
);

const ENGINE_METRICS: [Metric; 8] = [
    ("in_flight_requests", "gauge", "Requests in flight.", |e| {
        Some(e.in_flight.into())
    }),
    (
        "in_flight_tokens",
        "gauge",
        "Tokens of the requests in flight.",
        |e| Some(e.tokens.into()),
    ),
    (
        "requests_admitted_total",
        "counter",
        "Requests given to the engine since it was added.",
        |e| Some(e.admitted as f64),
    ),
    (
        "requests_finished_total",
        "counter",
        "Requests finished since then.",
        |e| Some(e.finished as f64),
    ),
    (
        "max_in_flight_requests",
        "gauge",
        "The most requests in flight.",
        |e| e.max_in_flight.map(f64::from),
    ),
    (
        "max_in_flight_tokens",
        "gauge",
        "The most tokens in flight.",
        |e| e.max_tokens.map(f64::from),
    ),
    (
        "weight",
        "gauge",
        "What the engine can do, compared with others.",
        |e| Some(e.weight.into()),
    ),
    ("up", "gauge", "1 if the engine takes requests.", |e| {
        Some(f64::from(u8::from(e.state == EngineState::Active)))
    }),
];

/// The table in Prometheus' text format.
fn metrics(worker: &Worker) -> Response<Reply> {
    let view = worker.table.snapshot();
    let mut out = String::new();
    for (name, kind, help, value) in ENGINE_METRICS {
        let name = format!("engine_{name}");
        describe(&mut out, &name, kind, help);
        for engine in &view.engines {
            if let Some(value) = value(engine) {
                let labels = format!("engine=\"{}\"", label(&engine.name));
                sample(&mut out, &name, &labels, value);
            }
        }
    }
    let name = "frontend_in_flight_requests";
    let help = "Requests in flight, by the worker that has them.";
    describe(&mut out, name, "gauge", help);
    for frontend in &view.frontends {
        let labels = format!("frontend=\"{}\",pid=\"{}\"", frontend.slot, frontend.pid);
        sample(&mut out, name, &labels, frontend.in_flight as f64);
    }
    if let Ok(state) = worker.table.path_state() {
        let help =
            "1 if the table lies at its path or has none, 0 if its file was removed or replaced.";
        describe(&mut out, "table_linked", "gauge", help);
        let linked = u8::from(!state.is_split());
        // Writing to a string cannot fail.
        let _ = writeln!(out, "headcount_table_linked {linked}");
    }
    worker.counters.write(&mut out);
    text(StatusCode::OK, "text/plain; version=0.0.4", out)
}

fn describe(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        out,
        "# HELP headcount_{name} {help}\n# TYPE headcount_{name} {kind}"
    );
}

fn sample(out: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(out, "headcount_{name}{{{labels}}} {value}");
}

/// A name as the value of a label.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}

fn state(engine: &EngineView) -> &'static str {
    match engine.state {
        EngineState::Active => "active",
        EngineState::Draining => "draining",
        EngineState::Down => "down",
        EngineState::Leaving => "leaving",
    }
}
