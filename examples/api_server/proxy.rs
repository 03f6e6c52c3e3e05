//! One request, from its head to the head of its answer.

use crate::answer::Answer;
use crate::dial;
use crate::exchange::{self, Failure};
use crate::headers;
use crate::notice::say;
use crate::prompt::Prompt;
use crate::refusal::Refusal;
use crate::status;
use crate::upload::{self, Upload};
use crate::worker::Worker;
use bytes::Bytes;
use headcount::Permit;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Uri, Version};
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The body of what clients are answered: an engine's, or one of our own.
pub(crate) type Reply = Either<Full<Bytes>, Answer>;

pub(crate) async fn answer(
    worker: Arc<Worker>,
    client: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Reply>, Infallible> {
    let id = headers::request_id(request.headers_mut());
    let mut response = match (request.method(), request.uri().path()) {
        (&Method::GET, "/health") => status::health(&worker.table),
        (&Method::GET, "/metrics") => status::metrics(&worker.table),
        _ => (forward(&worker, client, request).await).unwrap_or_else(Refusal::into_response),
    };
    response.headers_mut().insert(headers::REQUEST_ID, id);
    Ok(response)
}

async fn forward(
    worker: &Worker,
    client: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Refusal> {
    let (mut head, body) = request.into_parts();
    if asks_for_another_protocol(&head) {
        return Err(Refusal::Upgrade);
    }
    let upload = Upload::begin(body, &worker.options).await?;
    let wish = Wish::read(worker, &upload);
    headers::remove_hop_by_hop(&mut head.headers);
    headers::add_forwarded(&mut head.headers, client.ip());
    head.version = Version::HTTP_11;
    head.uri = to_origin(&head.uri);
    let may_repeat = head.method.is_idempotent() || worker.options.repeat_posts;

    let mut message = Request::from_parts(head, upload);
    let mut tried = Vec::new();
    let mut no_address = None;
    // Each time round there is an engine less to try, so this ends.
    loop {
        let permit = match wish.route(worker, &tried) {
            Ok(permit) => permit,
            Err(refusal) => {
                message.into_body().discard().await;
                return Err(match (refusal, no_address) {
                    (Refusal::NoEngine, Some(error)) => Refusal::NoConnection(error),
                    (refusal, _) => refusal,
                });
            }
        };
        let engine = permit.engine_name();
        tried.push(permit.engine());
        if let Ok(host) = HeaderValue::from_str(&dial::authority(&engine)) {
            message.headers_mut().insert(HOST, host);
        }
        let copy = may_repeat.then(|| copy(&message, worker)).flatten();
        match exchange::send(&engine, message, worker).await {
            // 101 without having been asked: nobody could make sense of what follows.
            Ok((answer, _)) if answer.status().is_informational() => {
                return Err(Refusal::EngineBrokeOff);
            }
            Ok((answer, connection)) => {
                let (mut head, body) = answer.into_parts();
                headers::remove_hop_by_hop(&mut head.headers);
                if let Ok(engine) = HeaderValue::from_str(&engine) {
                    head.headers.insert(headers::ENGINE, engine);
                }
                let limit = worker.options.engine_idle_timeout;
                let idle = Arc::clone(&worker.idle);
                let body = Answer::new(body, limit, permit, connection, idle);
                return Ok(Response::from_parts(head, Either::Right(body)));
            }
            Err(Failure::Unreachable(error, unsent)) => {
                mark_down(worker, &permit, &engine, &error);
                message = *unsent;
            }
            // No engine's fault; and the next one may have an address.
            Err(Failure::NoAddress(error, unsent)) => {
                no_address = Some(error);
                message = *unsent;
            }
            Err(Failure::BrokeOff(error)) => match (cut_by_client(&error), copy) {
                (Some(cut), _) => return Err(cut.into()),
                (None, Some(copy)) => message = copy,
                (None, None) => return Err(Refusal::EngineBrokeOff),
            },
            Err(Failure::TooSlow) => {
                let limit = worker.options.first_byte_timeout;
                return Err(Refusal::EngineTooSlow { limit });
            }
            Err(Failure::NoConnection(error)) => return Err(Refusal::NoConnection(error)),
        }
    }
}

/// What a request asks of the choice of its engine.
#[derive(Debug, Default)]
struct Wish {
    tokens: u32,
    prefer: Option<(usize, f64)>,
}

impl Wish {
    fn read(worker: &Worker, upload: &Upload) -> Self {
        let counts_tokens = worker.options.counts_tokens();
        if !counts_tokens && !worker.affinity.is_wanted() {
            return Self::default();
        }
        let beginning = worker.options.affinity_bytes;
        let prompt = Prompt::read(upload.kept(), upload.length(), beginning);
        Self {
            tokens: if counts_tokens { prompt.tokens } else { 0 },
            // Without a prompt there is nothing to be warm.
            prefer: (!prompt.beginning.is_empty())
                .then(|| worker.affinity.prefer(&prompt.beginning))
                .flatten(),
        }
    }

    /// Chooses an engine and counts the request there.
    fn route(&self, worker: &Worker, tried: &[usize]) -> Result<Permit, Refusal> {
        let mut request = headcount::Request::new().tokens(self.tokens).not(tried);
        if let Some((engine, slack)) = self.prefer {
            request = request.prefer(engine, slack);
        }
        (worker.frontend.route_with(&request)).map_err(|error| match error {
            headcount::Error::Saturated { .. } if self.is_too_large(worker) => {
                Refusal::TooManyTokens {
                    tokens: self.tokens,
                }
            }
            headcount::Error::Saturated { .. } => Refusal::Saturated,
            headcount::Error::Unavailable { .. } => Refusal::NoEngine,
            error => Refusal::Table(error),
        })
    }

    /// Whether no engine could take it even if it had nothing else to do.
    fn is_too_large(&self, worker: &Worker) -> bool {
        let engines = worker.table.snapshot().engines;
        self.tokens > 0
            && (engines.iter()).all(|e| e.max_tokens.is_some_and(|cap| cap < self.tokens))
    }
}

/// `h2c` is offered by clients that are as happy without, and may be ignored (RFC 9110, 7.8).
fn asks_for_another_protocol(head: &Parts) -> bool {
    let upgrade = head.headers.get(UPGRADE);
    head.method == Method::CONNECT || upgrade.is_some_and(|protocol| protocol != "h2c")
}

/// The path and query alone, for a client that has named the host as well.
fn to_origin(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    path.map_or_else(Uri::default, Uri::from)
}

/// The same request once more, if all of it is there.
fn copy(message: &Request<Upload>, worker: &Worker) -> Option<Request<Upload>> {
    let mut copy = Request::new(message.body().copy(&worker.options)?);
    *copy.method_mut() = message.method().clone();
    *copy.uri_mut() = message.uri().clone();
    *copy.headers_mut() = message.headers().clone();
    Some(copy)
}

/// From now on nobody sends anything to this engine, until the parent finds it well again.
fn mark_down(worker: &Worker, permit: &Permit, engine: &str, error: &io::Error) {
    // One that is drained or removed is not to come back by way of being down.
    if let Ok(true) = worker.table.down_if_active(permit.engine()) {
        say(format_args!("{engine} is down: {error}"));
    }
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
