//! `/health` and `/metrics`: any worker answers for the whole table.

use crate::proxy::Reply;
use crate::refusal::{json, text};
use headcount::{EngineState, EngineView, Table};
use hyper::{Response, StatusCode};
use std::fmt::Write;

/// 200 if there is an engine that takes requests, else 503; in any case with all that there are.
pub(crate) fn health(table: &Table) -> Response<Reply> {
    let view = table.snapshot();
    let is_well = view.engines.iter().any(|e| e.state == EngineState::Active);
    let engines = view.engines.iter().map(|engine| {
        serde_json::json!({
            "name": engine.name,
            "state": state(engine),
            "in_flight": engine.in_flight,
        })
    });
    let content = serde_json::json!({
        "status": if is_well { "ok" } else { "no engine" },
        "workers": view.frontends.iter().filter(|f| f.alive).count(),
        "engines": engines.collect::<Vec<_>>(),
    });
    let status = match is_well {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    json(status, &content)
}

/// Name, meaning and value of what is told of each engine.
type Gauge = (&'static str, &'static str, fn(&EngineView) -> Option<f64>);

/// The table in Prometheus' text format.
pub(crate) fn metrics(table: &Table) -> Response<Reply> {
    let view = table.snapshot();
    let mut out = String::new();
    let gauges: [Gauge; 6] = [
        ("in_flight", "Requests in flight.", |e| {
            Some(e.in_flight.into())
        }),
        ("tokens", "Tokens of the requests in flight.", |e| {
            Some(e.tokens.into())
        }),
        ("max_in_flight", "The most requests in flight.", |e| {
            e.max_in_flight.map(f64::from)
        }),
        ("max_tokens", "The most tokens in flight.", |e| {
            e.max_tokens.map(f64::from)
        }),
        (
            "weight",
            "What the engine can do, compared with others.",
            |e| Some(e.weight.into()),
        ),
        ("up", "1 if the engine takes requests.", |e| {
            Some(f64::from(u8::from(e.state == EngineState::Active)))
        }),
    ];
    for (name, help, value) in gauges {
        describe(&mut out, &format!("engine_{name}"), help);
        for engine in &view.engines {
            if let Some(value) = value(engine) {
                let label = label(&engine.name);
                sample(
                    &mut out,
                    &format!("engine_{name}{{engine=\"{label}\"}}"),
                    value,
                );
            }
        }
    }
    describe(
        &mut out,
        "frontend_in_flight",
        "Requests in flight, by the worker that has them.",
    );
    for frontend in &view.frontends {
        let labels = format!("slot=\"{}\",pid=\"{}\"", frontend.slot, frontend.pid);
        let value = frontend.in_flight as f64;
        sample(&mut out, &format!("frontend_in_flight{{{labels}}}"), value);
    }
    text(StatusCode::OK, "text/plain; version=0.0.4", out)
}

fn describe(out: &mut String, name: &str, help: &str) {
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        out,
        "# HELP headcount_{name} {help}\n# TYPE headcount_{name} gauge"
    );
}

fn sample(out: &mut String, series: &str, value: f64) {
    let _ = writeln!(out, "headcount_{series} {value}");
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
