//! HTTP on one thread. A slow or hostile client costs a connection, never the others' answers.

use crate::failure::{Failure, Outcome};
use crate::output::{self, printable};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

/// How long a connection may last: one request, one answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Further connections are closed without an answer.
const CONNECTIONS: usize = 64;

type Answer = Response<Full<Bytes>>;

/// Serves what `scrape` returns, until the process ends.
pub(crate) fn serve(
    address: SocketAddr,
    scrape: impl FnMut() -> Result<String, Failure> + 'static,
) -> Result<Outcome, Failure> {
    let failed = |doing: &str, error: std::io::Error| {
        Failure::failed(format!(
            "{doing} {address}: {error}; choose another address with --listen"
        ))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| failed("preparing to listen on", error))?;
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| failed("listening on", error))?;
        let local = listener
            .local_addr()
            .map_err(|error| failed("listening on", error))?;
        output::print(&format!("listening on http://{local}/metrics\n"))?;
        accept_all(&listener, Rc::new(RefCell::new(scrape))).await
    })
}

async fn accept_all<F>(listener: &TcpListener, scrape: Rc<RefCell<F>>) -> Result<Outcome, Failure>
where
    F: FnMut() -> Result<String, Failure> + 'static,
{
    let open = Rc::new(Cell::new(0));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is left, or the client is gone: try again in a moment.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        if open.get() >= CONNECTIONS {
            continue;
        }
        let counted = Counted::new(&open);
        let scrape = Rc::clone(&scrape);
        tokio::task::spawn_local(async move {
            let _counted = counted;
            // An error of a connection concerns its client only.
            let _ = timeout(CONNECTION_TIMEOUT, answer_one(stream, scrape)).await;
        });
    }
}

async fn answer_one<F>(stream: TcpStream, scrape: Rc<RefCell<F>>) -> hyper::Result<()>
where
    F: FnMut() -> Result<String, Failure> + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(&request, || (scrape.borrow_mut())());
        async move { Ok::<_, Infallible>(answer) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(request: &Request<Incoming>, scrape: impl FnOnce() -> Result<String, Failure>) -> Answer {
    const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
    const TEXT: &str = "text/plain; charset=utf-8";
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    match request.uri().path() {
        _ if !is_read => {
            let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".into());
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            answer
        }
        "/metrics" => match scrape() {
            Ok(metrics) => say(StatusCode::OK, METRICS, metrics),
            Err(failure) => {
                let said = printable(&failure.sentence) + "\n";
                say(StatusCode::SERVICE_UNAVAILABLE, TEXT, said)
            }
        },
        "/" => say(StatusCode::OK, TEXT, "see /metrics\n".into()),
        _ => say(StatusCode::NOT_FOUND, TEXT, "see /metrics\n".into()),
    }
}

fn say(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    (answer.headers_mut()).insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// One of the connections that are open.
struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn new(open: &Rc<Cell<usize>>) -> Self {
        open.set(open.get() + 1);
        Self(Rc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
