//! Passes on one request, from its head to the head of its answer.

use crate::client::socket::{Client, ClientLeft};
use crate::engine::engine_client::SendError;
use crate::log::say;
use crate::message::error_response::ErrorResponse;
use crate::message::framing;
use crate::message::headers;
use crate::message::idle_timeout::WaitedTime;
use crate::message::upload::{self, Upload};
use crate::report::pages;
use crate::report::record::CurrentEngine;
use crate::route::output::Output;
use crate::route::permits::{Permits, RoutingHints};
use crate::route::room;
use crate::worker::Worker;
use crate::worker::response_body::{Ending, ResponseBody};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, Uri, Version};
use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;

/// The body of an answer to a client: the engine's, or one of our own.
pub(crate) type Reply = Either<Full<Bytes>, ResponseBody>;

/// Answers a request, unless its client leaves first.
pub(crate) async fn answer(
    worker: Arc<Worker>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Response<Reply>, ClientLeft> {
    // Pinned first, for `select!` would move it.
    let mut answer = pin!(forward(&worker, &client, request));
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        left = client.clone().leaves() => return Err(left),
        () = worker.ending.cuts() => Err(ErrorResponse::Shutdown),
    };
    Ok(answer.unwrap_or_else(|error| error.into_response().map(Either::Left)))
}

/// Answers a request with one of our own pages, or with the answer of an engine.
async fn forward(
    worker: &Worker,
    client: &Client,
    request: Request<Incoming>,
) -> Result<Response<Reply>, ErrorResponse> {
    let (head, body) = request.into_parts();
    let checked = pages::page(&head).and_then(|page| match page {
        Some(_) => Ok(page),
        None => check(worker, &head, &body).map(|()| None),
    });
    match checked {
        // hyper leaves out the body of an answer to HEAD.
        Ok(Some(page)) => return Ok(page(&worker.pages).map(Either::Left)),
        Ok(None) => {}
        Err(error) => {
            // A client that waits for 100 has sent no body yet, and reading would ask for it.
            if !framing::is_expecting(&head) {
                upload::discard(body).await;
            }
            return Err(error);
        }
    }
    let upload = Upload::hold(body, &worker.options).await?;
    match RoutingHints::read(&worker.router, &head.headers, &upload) {
        Ok(hints) => pass_on(worker, client, head, upload, &hints).await,
        Err(error) => {
            upload.discard().await;
            Err(error)
        }
    }
}

/// Checks a request for an engine as far as possible before its body is there.
fn check(worker: &Worker, head: &Parts, body: &Incoming) -> Result<(), ErrorResponse> {
    if asks_for_another_protocol(head) {
        return Err(ErrorResponse::Upgrade);
    }
    let limit = worker.options.max_body;
    if body.size_hint().lower() > limit {
        return Err(upload::UploadError::TooLarge { limit }.into());
    }
    if framing::is_expecting(head) {
        room::check(&worker.router, &head.headers)
    } else {
        Ok(())
    }
}

/// Sends a request to one engine after the other until one answers.
async fn pass_on(
    worker: &Worker,
    client: &Client,
    mut head: Parts,
    upload: Upload,
    hints: &RoutingHints,
) -> Result<Response<Reply>, ErrorResponse> {
    let may_repeat = head.method.is_idempotent() || worker.options.repeat_posts;
    let ending = match head.version {
        Version::HTTP_11 => Ending::Marked,
        _ => Ending::Close,
    };
    let at = head.extensions.remove::<CurrentEngine>();
    let waited = head.extensions.remove::<WaitedTime>();
    let had_body = framing::has_body(&head.headers);
    headers::remove_hop_by_hop(&mut head.headers);
    headers::add_forwarded(&mut head, client.address_in_head());
    framing::set_length(&mut head.headers, had_body, &upload);
    head.version = Version::HTTP_11;
    head.uri = to_origin(&head.uri);

    let mut message = Request::from_parts(head, upload);
    let mut tried = Vec::new();
    let mut failed = None;
    // Each round leaves out one more engine, so the loop ends.
    loop {
        let permits = match (hints.take_in_turn(&worker.router, &tried, waited.as_ref())).await {
            Ok(permits) => permits,
            Err(error) => {
                message.into_body().discard().await;
                return Err(match (error, failed) {
                    // The failure of the last engine tells more.
                    (ErrorResponse::NoEngine, Some(failed)) => failed,
                    (error, _) => error,
                });
            }
        };
        let name = (worker.engines.names()).of(permits.engine(), || permits.engine_name());
        let engine = &name.text;
        tried.push(permits.engine());
        if let Some(at) = &at {
            at.set(engine);
        }
        if let Some(host) = name.host.clone() {
            message.headers_mut().insert(HOST, host);
        }
        let broke_off = |reason: String| ErrorResponse::EngineBrokeOff {
            engine: engine.clone(),
            reason,
        };
        match worker.engines.send(engine, message, may_repeat).await {
            Ok((answer, connection)) => {
                let (mut head, body) = answer.into_parts();
                let is_clear = framing::check_answer(&mut head)
                    .map_err(|reason| broke_off(reason.to_owned()))?;
                headers::remove_hop_by_hop(&mut head.headers);
                framing::let_events_pass(&mut head.headers);
                if let Some(engine) = name.field.clone() {
                    head.headers.insert(headers::ENGINE, engine);
                }
                let connection = (connection, is_clear.then(|| Arc::clone(&name)));
                let counts_output = worker.options.count_output;
                let output = counts_output.then(|| Output::of(&head.headers)).flatten();
                let request = (permits, output);
                let body =
                    ResponseBody::new(body, worker, request, connection, client.clone(), ending);
                return Ok(Response::from_parts(head, Either::Right(body)));
            }
            Err(SendError::Unreachable(error, unsent)) => {
                message = *unsent;
                mark_down(worker, &permits, engine, &error, message.headers());
            }
            // No fault of the engine. The next engine may have an address.
            Err(SendError::NoAddress(error, unsent)) => {
                failed = Some(ErrorResponse::NoConnection(error));
                message = *unsent;
            }
            Err(SendError::BrokeOff(error, again)) => match (error_of_upload(&error), again) {
                (Some(cut), _) => return Err(cut.into()),
                (None, Some(again)) => {
                    failed = Some(broke_off(with_causes(&error)));
                    message = *again;
                }
                (None, None) => return Err(broke_off(with_causes(&error))),
            },
            Err(SendError::TooSlow) => {
                let limit = worker.options.first_byte_timeout;
                let engine = engine.clone();
                return Err(ErrorResponse::EngineTooSlow { engine, limit });
            }
            Err(SendError::NoConnection(error)) => return Err(ErrorResponse::NoConnection(error)),
        }
    }
}

/// Whether a request cannot do without another protocol: `CONNECT`, or a WebSocket. Other offers to change
/// the protocol may be ignored (RFC 9110, section 7.8), and are, as other proxies do.
fn asks_for_another_protocol(head: &Parts) -> bool {
    let lists = |name, protocol: &str| {
        let values = head.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).any(|value| {
            value
                .split(',')
                .any(|item| item.trim().eq_ignore_ascii_case(protocol))
        })
    };
    head.method == Method::CONNECT || lists(CONNECTION, "upgrade") && lists(UPGRADE, "websocket")
}

/// Returns the path and query of a target that names the host as well.
fn to_origin(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    // hyper turns `http://host#fragment` into an empty path.
    let path = path.map(Uri::from).filter(|uri| !uri.path().is_empty());
    path.unwrap_or_default()
}

/// Marks an engine down in the table, so no worker sends a request to it until a probe of the parent brings it up.
fn mark_down(
    worker: &Worker,
    permits: &Permits,
    engine: &str,
    error: &io::Error,
    request: &HeaderMap,
) {
    // A probe must not bring back an engine that was drained or removed.
    if let Ok(true) = worker.table.down_if_active(permits.engine()) {
        let id = request.get(headers::REQUEST_ID).map(HeaderValue::as_bytes);
        let id = String::from_utf8_lossy(id.unwrap_or_default());
        say(format_args!(
            "{engine} is down: {error} (request {})",
            id.escape_default()
        ));
    }
}

/// Writes an error with its causes.
fn with_causes(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

/// Returns the error of the client's body, if that is why the request failed.
fn error_of_upload(error: &hyper::Error) -> Option<upload::UploadError> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(cut) = error.downcast_ref::<upload::UploadError>() {
            return Some(cut.clone());
        }
        source = error.source();
    }
    None
}
