//! One request, from its head to the head of its answer.

use crate::answer::{Answer, Ending};
use crate::client::{Client, Left};
use crate::dial;
use crate::engine_client::{self, Failure};
use crate::error_response::Refusal;
use crate::framing;
use crate::headers;
use crate::log::say;
use crate::places::{Places, Wish};
use crate::record::At;
use crate::room;
use crate::status;
use crate::upload::{self, Upload};
use crate::worker::Worker;
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
pub(crate) type Reply = Either<Full<Bytes>, Answer>;

pub(crate) async fn answer(
    worker: Arc<Worker>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Left> {
    let answer = tokio::select! {
        biased;
        answer = forward(&worker, &client, request) => answer,
        left = client.clone().leaves() => return Err(left),
        () = worker.cuts() => Err(Refusal::Shutdown),
    };
    Ok(answer.unwrap_or_else(Refusal::into_response))
}

/// The answer to a request: a page of ours, or what an engine says.
async fn forward(
    worker: &Worker,
    client: &Client,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Refusal> {
    let (head, body) = request.into_parts();
    let checked = status::page(&head).and_then(|page| match page {
        Some(_) => Ok(page),
        None => check(worker, &head, &body).map(|()| None),
    });
    match checked {
        // The server leaves out the body of an answer to HEAD.
        Ok(Some(page)) => return Ok(page(worker)),
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
    match Wish::read(worker, &head.headers, &upload) {
        Ok(wish) => pass_on(worker, client, head, upload, &wish).await,
        Err(refusal) => {
            upload.discard().await;
            Err(refusal)
        }
    }
}

/// What can be said of a request for an engine before its body is there.
fn check(worker: &Worker, head: &Parts, body: &Incoming) -> Result<(), Refusal> {
    if asks_for_another_protocol(head) {
        return Err(Refusal::Upgrade);
    }
    let limit = worker.options.max_body;
    if body.size_hint().lower() > limit {
        return Err(upload::Cut::TooLarge { limit }.into());
    }
    match framing::is_expecting(head) {
        true => room::check(worker),
        false => Ok(()),
    }
}

/// Sends a request to one engine after the other until one answers.
async fn pass_on(
    worker: &Worker,
    client: &Client,
    mut head: Parts,
    upload: Upload,
    wish: &Wish,
) -> Result<Response<Reply>, Refusal> {
    let may_repeat = head.method.is_idempotent() || worker.options.repeat_posts;
    let ending = match head.version {
        Version::HTTP_11 => Ending::Marked,
        _ => Ending::Close,
    };
    let at = head.extensions.remove::<At>();
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
        let places = match wish.take(worker, &tried) {
            Ok(places) => places,
            Err(refusal) => {
                message.into_body().discard().await;
                return Err(match (refusal, failed) {
                    // What the last engine did says more.
                    (Refusal::NoEngine, Some(failed)) => failed,
                    (refusal, _) => refusal,
                });
            }
        };
        let engine = places.engine_name();
        tried.push(places.engine());
        if let Some(at) = &at {
            at.comes_to(&engine);
        }
        if let Ok(host) = HeaderValue::from_str(&dial::authority(&engine)) {
            message.headers_mut().insert(HOST, host);
        }
        let broke_off = |reason: String| Refusal::EngineBrokeOff {
            engine: engine.clone(),
            reason,
        };
        match engine_client::send(&engine, message, may_repeat, worker).await {
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
                let body = Answer::new(body, worker, places, connection, client.clone(), ending);
                return Ok(Response::from_parts(head, Either::Right(body)));
            }
            Err(Failure::Unreachable(error, unsent)) => {
                message = *unsent;
                mark_down(worker, &places, &engine, &error, message.headers());
            }
            // No engine's fault; and the next one may have an address.
            Err(Failure::NoAddress(error, unsent)) => {
                failed = Some(Refusal::NoConnection(error));
                message = *unsent;
            }
            Err(Failure::BrokeOff(error, again)) => match (cut_by_client(&error), again) {
                (Some(cut), _) => return Err(cut.into()),
                (None, Some(again)) => {
                    failed = Some(broke_off(with_causes(&error)));
                    message = *again;
                }
                (None, None) => return Err(broke_off(with_causes(&error))),
            },
            Err(Failure::TooSlow) => {
                let limit = worker.options.first_byte_timeout;
                return Err(Refusal::EngineTooSlow { engine, limit });
            }
            Err(Failure::NoConnection(error)) => return Err(Refusal::NoConnection(error)),
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
    places: &Places,
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
fn cut_by_client(error: &hyper::Error) -> Option<upload::Cut> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(cut) = error.downcast_ref::<upload::Cut>() {
            return Some(cut.clone());
        }
        source = error.source();
    }
    None
}
