//! A worker: serves clients from the shared listening socket, until it is to end.

mod proxy;
mod response_body;

use crate::client::acceptor::{Acceptor, give_way};
use crate::client::descriptors::{Clients, Share};
use crate::client::linger::{Lingering, Until};
use crate::client::listener;
use crate::client::silence::{self, Phase, SilenceLimits, Watched};
use crate::client::socket::{Client, ClientLeft};
use crate::engine::engine_client::EngineClient;
use crate::error::Error;
use crate::log::{hurry, say};
use crate::message::error_response::ErrorResponse;
use crate::message::headers;
use crate::options::{Inherited, Options};
use crate::process::ending::Ending;
use crate::process::shutdown::{Shutdown, Step};
use crate::report::counters::Counters;
use crate::report::pages::{self, Pages};
use crate::report::record::{RecordedBody, Recorder};
use crate::route::Router;
use crate::worker::proxy::Reply;
use headcount::Table;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// How often the worker closes old connections to engines, and renews the engines for affinity.
const HOUSEKEEPING: Duration = Duration::from_millis(250);
/// How long a connection for our own pages may be silent.
const SHORT: Duration = Duration::from_secs(5);
/// How long the end waits until the requests that it cut are answered.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How many bytes of an answer the worker takes from an engine before the client takes them, so that a slow
/// reader does not occupy an engine that has finished.
const ANSWER_HELD: usize = 1 << 20;
/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 400 << 10;

/// What the requests of a worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    options: Options,
    table: Table,
    router: Router,
    engines: EngineClient,
    pages: Pages,
    counters: Arc<Counters>,
    recorder: Arc<Recorder>,
    ending: Arc<Ending>,
    clients: Arc<Clients>,
    lingering: Lingering,
}

/// Serves clients until the parent or a signal ends the worker.
pub(crate) async fn serve(inherited: Inherited, options: Options) -> Result<(), Error> {
    let socket = listener::inherited(inherited.listener)?;
    let counters = Counters::inherited(inherited.counters, inherited.number)?;
    let mut shutdown = Shutdown::watch(options.lifeline)?;
    let table = Table::options().inherited()?;
    let worker = Arc::new(Worker::new(table, Arc::new(counters), options)?);
    let connections = GracefulShutdown::new();
    let mut housekeeping = interval(HOUSEKEEPING);
    housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let acceptor = Acceptor::new(&socket, &worker.clients);
    let is_forced = loop {
        tokio::select! {
            (stream, peer, share) = acceptor.next() => {
                worker.serve_client(stream, peer, share, &connections);
                give_way();
            }
            _ = housekeeping.tick() => {
                worker.engines.close_old();
                worker.router.renew_affinity();
            }
            step = shutdown.next() => match step {
                Step::Reload => worker.router.reload(&worker.options),
                Step::Drain => worker.ending.drain(),
                Step::End(_) => break false,
                Step::AtOnce => break true,
            }
        }
    };
    worker.ending.drain();
    // Clients that are connected already are served. If other workers go on, those serve later ones.
    while let Ok((stream, peer, share)) = timeout(Duration::ZERO, acceptor.next()).await {
        worker.serve_client(stream, peer, share, &connections);
        tokio::task::yield_now().await;
    }
    drop(socket);
    let mut finished = pin!(connections.shutdown());
    let mut time_is_over = pin!(sleep(worker.options.drain_timeout));
    tokio::select! {
        biased;
        () = shutdown.at_once(), if !is_forced => hurry(),
        () = ready(()), if is_forced => hurry(),
        () = &mut finished => {
            // The rest of the time is for clients that have not received all yet.
            tokio::select! {
                () = shutdown.at_once() => {}
                () = worker.lingering.end() => {}
                () = time_is_over => {}
            }
            return Ok(());
        }
        () = &mut time_is_over => say(format_args!(
            "worker {}: the time of --drain-timeout is over; cutting the requests in flight",
            std::process::id()
        )),
    }
    worker.ending.cut();
    let _ = timeout(LAST_ANSWERS, finished).await;
    Ok(())
}

impl Worker {
    fn new(table: Table, counters: Arc<Counters>, options: Options) -> Result<Self, Error> {
        let ending = Arc::new(Ending::new());
        let clients = Arc::new(Clients::new());
        let recorder = Recorder {
            counters: Arc::clone(&counters),
            ending: Arc::clone(&ending),
            has_access_log: options.access_log,
            has_queue: options.queue.is_some(),
        };
        Ok(Self {
            router: Router::join(&table, &options)?,
            // The descriptors suffice for as many engine connections as clients. No more are ever in use.
            engines: EngineClient::new(&options, clients.most()),
            pages: Pages {
                table: table.clone(),
                path: options.table.clone(),
                counters: Arc::clone(&counters),
                ending: Arc::clone(&ending),
            },
            recorder: Arc::new(recorder),
            lingering: Lingering::new(),
            options,
            table,
            counters,
            ending,
            clients,
        })
    }

    fn serve_client(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        share: Share,
        connections: &GracefulShutdown,
    ) {
        let (client, socket) = Client::new(stream, peer);
        let mut stream = TimeoutStream::new(socket);
        stream.set_write_timeout(Some(self.options.client_idle_timeout));
        let phase = Arc::new(Phase::new());
        let stream = Box::pin(Watched {
            stream: Box::pin(stream),
            phase: Arc::clone(&phase),
        });
        let is_spare = share.is_spare;
        let (worker, watched) = (Arc::clone(self), Arc::clone(&phase));
        let asking = client.clone();
        let service = service_fn(move |request| {
            Arc::clone(&worker).answer(asking.clone(), request, Arc::clone(&watched), is_spare)
        });
        let connection = http1::Builder::new()
            .max_buf_size(ANSWER_HELD)
            .max_header_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        let limits = SilenceLimits {
            idle: self.options.keepalive_timeout,
            head: self.options.client_idle_timeout,
        };
        let limits = if is_spare {
            SilenceLimits {
                idle: SHORT,
                head: SHORT.min(limits.head),
            }
        } else {
            limits
        };
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            worker.counters.own().connection_opened();
            // A client that breaks off is no error of this program.
            let one = worker.lingering.one();
            silence::serve(connection, phase, limits).await;
            client.linger(|| worker.lingers_until()).await;
            drop((client, one));
            worker.counters.own().connection_closed();
            drop(share);
        });
    }

    /// How long the end of a connection may last.
    fn lingers_until(&self) -> Until {
        match (self.clients.are_many(), self.ending.is_draining()) {
            (true, _) => Until::Now,
            (false, true) => Until::Received,
            (false, false) => Until::Closed,
        }
    }

    async fn answer(
        self: Arc<Self>,
        client: Client,
        mut request: Request<Incoming>,
        phase: Arc<Phase>,
        is_spare: bool,
    ) -> Result<Response<RecordedBody<Reply>>, ClientLeft> {
        let id = headers::request_id(request.headers_mut());
        let record = (self.recorder).begin(&phase, client.address(), &mut request);
        let mut response = if is_spare {
            self.answer_briefly(request)
        } else {
            proxy::answer(self, client, request).await?
        };
        response.headers_mut().insert(headers::REQUEST_ID, id);
        Ok(record.answered(response))
    }

    /// Answers on a connection for our own pages: the process has no descriptor for one to an engine.
    fn answer_briefly(&self, request: Request<Incoming>) -> Response<Reply> {
        let (head, _) = request.into_parts();
        let mut response = match pages::page(&head) {
            Ok(Some(page)) => page(&self.pages),
            Ok(None) => ErrorResponse::TooManyConnections.into_response(),
            Err(error) => error.into_response(),
        };
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response.map(Either::Left)
    }
}
