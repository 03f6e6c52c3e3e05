//! A mock engine: it decodes nothing, at the pace of an engine that does.
//!
//! It works in steps. A step takes longer the more requests are in the batch, and gives each of them a
//! token. Requests have OpenAI's form, of chat or of completions (see `openai`). `/health` says 200,
//! `/stats` has the counters.

mod openai;

use crate::engine::entry::EngineEntry;
use crate::error::Error;
use crate::log::tell;
use crate::mock::openai::MockRequest;
use crate::options::Options;
use crate::process::child;
use crate::process::shutdown::Shutdown;
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed}; // for counts that are looked at only
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

type Reply = Either<Full<Bytes>, Channel<Bytes>>;
/// Processes that are mock engines, each with its lifeline.
pub(crate) type Mocks = Vec<(Child, Option<ChildStdin>)>;

/// How long a mock engine that ends may go on with its requests.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Engine {
    steps: watch::Sender<u64>,
    running: AtomicU64,
    /// The most requests that ran at once.
    peak: AtomicU64,
    served: AtomicU64,
    aborted: AtomicU64,
}

/// Starts mock engines on free ports.
pub(crate) async fn start(count: usize) -> Result<(Vec<EngineEntry>, Mocks), Error> {
    let failed = |source| Error::system("start a mock engine", source);
    let (mut entries, mut mocks) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut command = child::this_program();
        command
            .args(std::env::args_os().skip(1))
            .args(["--mock-engine", "127.0.0.1:0", "--lifeline"])
            .stdout(Stdio::piped());
        let (mut mock, lifeline) = child::start(command).map_err(failed)?;
        let output = mock
            .stdout
            .take()
            .ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .await
            .map_err(failed)?;
        let address = line.trim().strip_prefix("listening on ");
        let address = address.and_then(|address| address.parse().ok());
        let address = address.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        entries.push(EngineEntry::at(address));
        mocks.push((mock, lifeline));
    }
    Ok((entries, mocks))
}

/// Ends mock engines.
pub(crate) async fn end(mocks: Mocks, at_once: bool) {
    for (mut mock, lifeline) in mocks {
        drop(lifeline);
        if at_once {
            _ = mock.kill().await
        } else {
            child::finish(&mut mock, Duration::ZERO).await
        }
    }
}

/// Serves as a mock engine until the process is to end, and then finishes what has begun.
pub(crate) async fn serve(address: SocketAddr, options: Options) -> Result<(), Error> {
    let failed = |source| Error::Listen { address, source };
    let mut shutdown = Shutdown::watch(options.lifeline)?;
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    tell(format_args!("listening on http://{address}"));
    let engine = Arc::new(Engine::default());
    tokio::spawn(Arc::clone(&engine).step(options));
    let connections = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = shutdown.requested() => break,
        };
        let _ = stream.set_nodelay(true);
        let engine = Arc::clone(&engine);
        let service = service_fn(move |request| Arc::clone(&engine).answer(request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move { drop(connection.await) });
    }
    let _ = timeout(DRAIN_TIMEOUT, connections.shutdown()).await;
    Ok(())
}

impl Engine {
    async fn step(self: Arc<Self>, options: Options) {
        loop {
            let batch = self.running.load(Relaxed) as u32;
            sleep(options.mock_step + options.mock_step_per_request * batch).await;
            self.steps.send_modify(|steps| *steps += 1);
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Infallible> {
        let path = request.uri().path().to_owned();
        match path.as_str() {
            "/health" => return Ok(plain(StatusCode::OK, "{}".to_owned())),
            "/stats" => return Ok(plain(StatusCode::OK, self.stats())),
            openai::MODELS => return Ok(plain(StatusCode::OK, openai::models())),
            openai::CHAT | openai::COMPLETIONS => {}
            _ => return Ok(not_found(&path)),
        }
        let Ok(body) = request.into_body().collect().await else {
            return Ok(plain(StatusCode::BAD_REQUEST, "{}".to_owned()));
        };
        let asked = match MockRequest::read(&path, &body.to_bytes()) {
            Ok(asked) => asked,
            Err(error) => {
                let error = openai::error(&error.to_string(), "bad_request");
                return Ok(plain(StatusCode::BAD_REQUEST, error));
            }
        };
        let running = InBatch::start(&self);
        let steps = self.steps.subscribe();
        if !asked.stream {
            wait(steps, asked.tokens()).await;
            running.done();
            return Ok(plain(StatusCode::OK, asked.whole()));
        }
        let (tokens, body) = Channel::new(1);
        tokio::spawn(async move { stream(tokens, steps, &asked, running).await });
        let mut response = Response::new(Either::Right(body));
        let kind = hyper::header::HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }

    fn stats(&self) -> String {
        serde_json::json!({
            "running": self.running.load(Relaxed),
            "peak": self.peak.load(Relaxed),
            "served": self.served.load(Relaxed),
            "aborted": self.aborted.load(Relaxed),
        })
        .to_string()
    }
}

/// Answers an unknown path, so that a mistake in a path shows already with a mock engine.
fn not_found(path: &str) -> Response<Reply> {
    let message = format!(
        "a mock engine has no {path}; it has {}, {} and {}",
        openai::CHAT,
        openai::COMPLETIONS,
        openai::MODELS
    );
    plain(StatusCode::NOT_FOUND, openai::error(&message, "not_found"))
}

fn plain(status: StatusCode, content: String) -> Response<Reply> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(content))));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Waits for a number of steps.
async fn wait(mut steps: watch::Receiver<u64>, count: u64) {
    let end = steps.borrow_and_update().saturating_add(count);
    // Fails when the process ends.
    let _ = steps.wait_for(|step| *step >= end).await;
}

/// Sends one token a step. Ends early if the client has left.
async fn stream(
    to: Sender<Bytes>,
    steps: watch::Receiver<u64>,
    asked: &MockRequest,
    running: InBatch,
) {
    let mut to = to;
    // All tokens but the first and the last are the same.
    let middle = asked.piece(1);
    for number in 0..asked.tokens() {
        wait(steps.clone(), 1).await;
        let piece = match number {
            1.. if number + 1 < asked.tokens() => middle.clone(),
            _ => asked.piece(number),
        };
        if to.send_data(piece).await.is_err() {
            return;
        }
    }
    running.done();
    for event in asked.end() {
        if to.send_data(event).await.is_err() {
            return;
        }
    }
}

/// A request in the batch. One that is dropped before it is done counts as aborted.
#[derive(Debug)]
struct InBatch {
    engine: Arc<Engine>,
    done: bool,
}

impl InBatch {
    fn start(engine: &Arc<Engine>) -> Self {
        let now = engine.running.fetch_add(1, Relaxed) + 1;
        engine.peak.fetch_max(now, Relaxed);
        Self {
            engine: Arc::clone(engine),
            done: false,
        }
    }

    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for InBatch {
    fn drop(&mut self) {
        self.engine.running.fetch_sub(1, Relaxed);
        let counted = if self.done {
            &self.engine.served
        } else {
            &self.engine.aborted
        };
        counted.fetch_add(1, Relaxed);
    }
}
