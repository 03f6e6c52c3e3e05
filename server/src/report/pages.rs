//! The pages `/health`, `/live` and `/metrics`. Any worker answers for the whole deployment.

use crate::message::error_response::{ErrorResponse, json, text};
use crate::message::framing;
use crate::process::ending::Ending;
use crate::report::counters::Counters;
use bytes::Bytes;
use headcount::{EngineState, PathState, Table};
use headcount_metrics::{Contents, Sample, printable};
use http_body_util::Full;
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use std::path::PathBuf;
use std::sync::Arc;

/// What the pages show.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) table: Table,
    /// Where the table lies, if it has a path.
    pub(crate) path: Option<PathBuf>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ending: Arc<Ending>,
}

/// Answers a request.
pub(crate) type Page = fn(&Pages) -> Response<Full<Bytes>>;

/// Returns the page that a request asks for, or `None` if the request is for an engine. Checks its framing
/// in any case.
pub(crate) fn page(head: &Parts) -> Result<Option<Page>, ErrorResponse> {
    framing::check_request(head)?;
    let page: Page = match head.uri.path() {
        "/health" => health,
        "/live" => live,
        "/metrics" => metrics,
        _ => return Ok(None),
    };
    match head.method {
        Method::GET | Method::HEAD => Ok(Some(page)),
        _ => Err(ErrorResponse::Method),
    }
}

/// 200 as long as this process works, whatever the engines do: a restart would not help them.
fn live(_: &Pages) -> Response<Full<Bytes>> {
    json(StatusCode::OK, &serde_json::json!({"status": "alive"}))
}

/// 200 if an engine takes requests and this deployment is not ending, otherwise 503. Lists all engines in
/// any case.
fn health(pages: &Pages) -> Response<Full<Bytes>> {
    let view = pages.table.view();
    let has_engine = view.engines.iter().any(|e| e.state == EngineState::Active);
    let is_well = has_engine && !pages.ending.is_draining();
    let engines = view.engines.iter().map(|engine| {
        serde_json::json!({
            "name": engine.name,
            "state": engine.state.name(),
            "in_flight": engine.in_flight,
        })
    });
    let content = serde_json::json!({
        "status": match () {
            () if pages.ending.is_draining() => "draining",
            () if has_engine => "ok",
            () => "no engine",
        },
        "table": pages.table.path_state().map_or("unknown", PathState::name),
        "workers": view.frontends.iter().filter(|f| f.alive).count(),
        "engines": engines.collect::<Vec<_>>(),
    });
    let status = if is_well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json(status, &content)
}

/// The table in Prometheus' text format, as `headcount metrics` shows it, and the counters of the workers.
fn metrics(pages: &Pages) -> Response<Full<Bytes>> {
    let table = &pages.table;
    let path = pages.path.as_deref();
    let looked = Sample {
        label: path.map_or("memory".to_owned(), |path| {
            printable(&path.display().to_string())
        }),
        contents: Some(Contents {
            view: table.view(),
            dimensions: table.dimensions(),
            is_linked: !table.path_state().is_ok_and(PathState::is_split),
        }),
    };
    match headcount_metrics::encode(&[looked]) {
        Ok(mut out) => {
            pages.counters.write(&mut out);
            text(StatusCode::OK, "text/plain; version=0.0.4", out)
        }
        Err(error) => {
            let error = format!("writing metrics: {error}; report this");
            text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error)
        }
    }
}
