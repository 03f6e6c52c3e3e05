//! One request, from its head to the head of its answer.

use crate::client::socket::{Client, ClientLeft};
use crate::engine::dial;
use crate::engine::engine_client::SendError;
use crate::log::say;
use crate::message::error_response::ErrorResponse;
use crate::message::framing;
use crate::message::headers;
use crate::message::upload::{self, Upload};
use crate::report::pages;
use crate::report::record::CurrentEngine;
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
use std::sync::Arc;

/// The body of what clients are answered: an engine's, or one of our own.
pub(crate) type Reply = Either<Full<Bytes>, ResponseBody>;

pub(crate) async fn answer(
    worker: Arc<Worker>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Response<Reply>, ClientLeft> {
    let answer = tokio::select! {
        biased;
        answer = forward(&worker, &client, request) => answer,
        left = client.clone().leaves() => return Err(left),
        () = worker.ending.cuts() => Err(ErrorResponse::Shutdown),
    };
    Ok(answer.unwrap_or_else(|error| error.into_response().map(Either::Left)))
}

/// The answer to a request: a page of ours, or what an engine says.
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
        // The server leaves out the body of an answer to HEAD.
        Ok(Some(page)) => return Ok(page(&worker.pages).map(Either::Left)),
        Ok(None) => {}
        Err(refusal) => {
            // A client that asks first has nothing under way, and to take it in would be to ask for it.
            if !framing::is_expecting(&head) {
                upload::discard(body).await;
            }
            return Err(refusal);
        }
    }
    let upload = Upload::hold(body, &worker.options).await?;
    match RoutingHints::read(&worker.router, &head.headers, &upload) {
        Ok(hints) => pass_on(worker, client, head, upload, &hints).await,
        Err(refusal) => {
            upload.discard().await;
            Err(refusal)
        }
    }
}

/// What can be said of a request for an engine before its body is there.
fn check(worker: &Worker, head: &Parts, body: &Incoming) -> Result<(), ErrorResponse> {
    if asks_for_another_protocol(head) {
        return Err(ErrorResponse::Upgrade);
    }
    let limit = worker.options.max_body;
    if body.size_hint().lower() > limit {
        return Err(upload::UploadError::TooLarge { limit }.into());
    }
    match framing::is_expecting(head) {
        true => room::check(&worker.router),
        false => Ok(()),
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
    let had_body = framing::has_body(&head.headers);
    headers::remove_hop_by_hop(&mut head.headers);
    headers::add_forwarded(&mut head, client.address());
    framing::set_length(&mut head.headers, had_body, &upload);
    head.version = Version::HTTP_11;
    head.uri = to_origin(&head.uri);

    let mut message = Request::from_parts(head, upload);
    let mut tried = Vec::new();
    let mut failed = None;
    // Each time round there is an engine less to try, so this ends.
    loop {
        let places = match hints.take(&worker.router, &tried) {
            Ok(places) => places,
            Err(refusal) => {
                message.into_body().discard().await;
                return Err(match (refusal, failed) {
                    // What the last engine did says more.
                    (ErrorResponse::NoEngine, Some(failed)) => failed,
                    (refusal, _) => refusal,
                });
            }
        };
        let engine = places.engine_name();
        tried.push(places.engine());
        if let Some(at) = &at {
            at.set(&engine);
        }
        if let Ok(host) = HeaderValue::from_str(&dial::authority(&engine)) {
            message.headers_mut().insert(HOST, host);
        }
        let broke_off = |reason: String| ErrorResponse::EngineBrokeOff {
            engine: engine.clone(),
            reason,
        };
        match worker.engines.send(&engine, message, may_repeat).await {
            Ok((answer, connection)) => {
                let (mut head, body) = answer.into_parts();
                let is_clear = framing::check_answer(&mut head)
                    .map_err(|reason| broke_off(reason.to_owned()))?;
                headers::remove_hop_by_hop(&mut head.headers);
                framing::let_events_pass(&mut head.headers);
                if let Ok(engine) = HeaderValue::from_str(&engine) {
                    head.headers.insert(headers::ENGINE, engine);
                }
                let connection = (connection, is_clear);
                let body =
                    ResponseBody::new(body, worker, places, connection, client.clone(), ending);
                return Ok(Response::from_parts(head, Either::Right(body)));
            }
            Err(SendError::Unreachable(error, unsent)) => {
                message = *unsent;
                mark_down(worker, &places, &engine, &error, message.headers());
            }
            // No engine's fault; and the next one may have an address.
            Err(SendError::NoAddress(error, unsent)) => {
                failed = Some(ErrorResponse::NoConnection(error));
                message = *unsent;
            }
            Err(SendError::BrokeOff(error, again)) => match (cut_by_client(&error), again) {
                (Some(cut), _) => return Err(cut.into()),
                (None, Some(again)) => {
                    failed = Some(broke_off(with_causes(&error)));
                    message = *again;
                }
                (None, None) => return Err(broke_off(with_causes(&error))),
            },
            Err(SendError::TooSlow) => {
                let limit = worker.options.first_byte_timeout;
                return Err(ErrorResponse::EngineTooSlow { engine, limit });
            }
            Err(SendError::NoConnection(error)) => return Err(ErrorResponse::NoConnection(error)),
        }
    }
}

/// An offer of another protocol may be ignored (RFC 9110, section 7.8), and is, as other proxies do. But who
/// asks for a WebSocket cannot do without.
fn asks_for_another_protocol(head: &Parts) -> bool {
    let lists = |name, what: &str| {
        let values = head.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).any(|value| {
            value
                .split(',')
                .any(|item| item.trim().eq_ignore_ascii_case(what))
        })
    };
    head.method == Method::CONNECT || lists(CONNECTION, "upgrade") && lists(UPGRADE, "websocket")
}

/// The path and query alone, for a client that has named the host as well.
fn to_origin(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    // Of `http://host#fragment` hyper makes an empty path.
    let path = path.map(Uri::from).filter(|uri| !uri.path().is_empty());
    path.unwrap_or_default()
}

/// From now on no worker sends anything to this engine, until the parent finds it well again.
fn mark_down(
    worker: &Worker,
    places: &Permits,
    engine: &str,
    error: &io::Error,
    request: &HeaderMap,
) {
    // One that is drained or removed is not to come back by way of being down.
    if let Ok(true) = worker.table.down_if_active(places.engine()) {
        let id = request.get(headers::REQUEST_ID).map(HeaderValue::as_bytes);
        let id = String::from_utf8_lossy(id.unwrap_or_default());
        say(format_args!(
            "{engine} is down: {error} (request {})",
            id.escape_default()
        ));
    }
}

/// An error and all that led to it.
fn with_causes(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

/// Whether an exchange has failed because the client did not send what it had announced.
fn cut_by_client(error: &hyper::Error) -> Option<upload::UploadError> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(cut) = error.downcast_ref::<upload::UploadError>() {
            return Some(cut.clone());
        }
        source = error.source();
    }
    None
}
