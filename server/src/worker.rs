//! A worker: accepts connections, until it is to end.

use crate::affinity::Affinity;
use crate::client::{Client, Left};
use crate::connection::{self, Limits, Noted, Phase};
use crate::counters::Counters;
use crate::descriptors::{Clients, Share};
use crate::dial::{self, Connection, Dialer};
use crate::engine_client::Idle;
use crate::error::Error;
use crate::error_response::Refusal;
use crate::headers;
use crate::linger::{Lingering, Patience};
use crate::listener;
use crate::log::{hurry, say};
use crate::options::{Inherited, Options};
use crate::proxy::{self, Reply};
use crate::record::{Record, Recorded};
use crate::shutdown::{End, Word};
use crate::status;
use headcount::{Frontend, Table};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed}; // one thread has it
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// How often old connections to engines are closed, and the engines for affinity are looked up.
const HOUSEKEEPING: Duration = Duration::from_millis(250);
/// How long a worker with too many clients lets the others have the next ones, and waits when it has no
/// descriptor at all.
const OTHERS_FIRST: Duration = Duration::from_millis(50);
/// A failure to accept is said again when there was no other one like it for so long.
const SAID_AGAIN: Duration = Duration::from_secs(60);
/// How many connections it then takes in a row.
const IN_A_ROW: u32 = 16;
/// How long a connection for our own pages may be silent.
const SHORT: Duration = Duration::from_secs(5);

/// How long the end waits for the last answers to be written: to requests that have none yet.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Bytes of an answer that are taken from an engine before the client takes them: a slow reader does not hold
/// the place of an engine that has finished.
const ANSWER_HELD: usize = 1 << 20;

/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 400 << 10;

/// What the requests of a worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) table: Table,
    pub(crate) frontend: Frontend,
    pub(crate) options: Options,
    pub(crate) dialer: Dialer,
    /// Connections to engines that are open and not in use.
    pub(crate) idle: Arc<Idle>,
    pub(crate) affinity: Affinity,
    pub(crate) counters: Counters,
    clients: Arc<Clients>,
    lingering: Lingering,
    is_draining: AtomicBool,
    /// Whether what is in flight is cut.
    cuts: watch::Sender<bool>,
}

pub(crate) async fn serve(inherited: Inherited, options: Options) -> Result<(), Error> {
    let socket = listener::inherited(inherited.listener)?;
    let counters = Counters::inherited(inherited.counters, inherited.number)?;
    let mut end = End::watch(options.lifeline)?;
    let table = Table::options().inherited()?;
    let frontend = table.join()?.with_policy(options.policy());
    let clients = Arc::new(Clients::new());
    let worker = Arc::new(Worker {
        dialer: Dialer::new(&options),
        affinity: Affinity::new(&options, &table),
        idle: Arc::default(),
        table,
        frontend,
        options,
        counters,
        clients,
        lingering: Lingering::new(),
        is_draining: AtomicBool::new(false),
        cuts: watch::Sender::new(false),
    });
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
                worker.idle.close_old();
                worker.affinity.look_up(&worker.table);
            }
            word = end.next() => match word {
                Word::Drain => worker.is_draining.store(true, Relaxed),
                Word::End(_) => break false,
                Word::AtOnce => break true,
            }
        }
    };
    worker.is_draining.store(true, Relaxed);
    // Clients that are connected already are served. If other workers go on, so are those that come later.
    while let Ok((stream, peer, share)) = timeout(Duration::ZERO, acceptor.next()).await {
        worker.serve_client(stream, peer, share, &connections);
        tokio::task::yield_now().await;
    }
    drop(socket);
    let mut finished = pin!(connections.shutdown());
    let mut time_is_over = pin!(sleep(worker.options.drain_timeout));
    tokio::select! {
        biased;
        () = end.comes_at_once(), if !is_forced => hurry(),
        () = ready(()), if is_forced => hurry(),
        () = &mut finished => {
            // The rest of the time is for what was sent to get to its clients.
            tokio::select! {
                () = end.comes_at_once() => {}
                () = worker.lingering.end() => {}
                () = time_is_over => {}
            }
            return Ok(());
        }
        () = &mut time_is_over => say(format_args!(
            "worker {}: ending with requests in flight, after the time of --drain-timeout",
            std::process::id()
        )),
    }
    worker.cuts.send_replace(true);
    let _ = timeout(LAST_WORDS, finished).await;
    Ok(())
}

/// Accepts connections as long as there are descriptors for what they need.
struct Acceptor<'a> {
    socket: &'a TcpListener,
    clients: &'a Arc<Clients>,
    /// How many more are taken before the others may have some, while there are too many.
    in_a_row: Cell<u32>,
    /// How accepting has failed, and when the last time.
    failures: RefCell<BTreeMap<Option<i32>, Instant>>,
}

impl<'a> Acceptor<'a> {
    fn new(socket: &'a TcpListener, clients: &'a Arc<Clients>) -> Self {
        Self {
            socket,
            clients,
            in_a_row: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    /// The next connection.
    async fn next(&self) -> (TcpStream, SocketAddr, Share) {
        loop {
            if self.clients.are_full() && self.in_a_row.get() == 0 {
                sleep(OTHERS_FIRST).await;
                self.in_a_row.set(IN_A_ROW);
            }
            if !self.clients.have_room() {
                sleep(OTHERS_FIRST).await;
                continue;
            }
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    self.in_a_row.set(self.in_a_row.get().saturating_sub(1));
                    return (stream, peer, self.clients.share());
                }
                // Having no descriptor for it is no reason to stop.
                Err(error) => {
                    self.say_failure(&error);
                    sleep(OTHERS_FIRST).await;
                }
            }
        }
    }

    fn say_failure(&self, error: &io::Error) {
        let mut failures = self.failures.borrow_mut();
        let last = failures.insert(error.raw_os_error(), Instant::now());
        if last.is_none_or(|last| last.elapsed() > SAID_AGAIN) {
            say(format_args!(
                "worker {}: cannot accept connections: {error}; trying again",
                std::process::id()
            ));
        }
    }
}

/// The other workers were woken as well: lets them have the next connection.
///
/// Without it, the worker that wakes first takes all of a burst, a gateway's pool of connections, say, and is
/// the bottleneck for as long as they last. The sleep is shorter than one of the event loop can be.
/// Yielding the processor instead costs much more than that where many processes compete for it.
fn give_way() {
    std::thread::sleep(Duration::from_micros(20));
}

impl Worker {
    /// Whether this deployment is to end soon, or ends.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Whether what is in flight is cut, for this process ends.
    pub(crate) fn is_cutting(&self) -> bool {
        *self.cuts.borrow()
    }

    /// Returns when what is in flight is to be cut.
    pub(crate) fn cuts(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut cuts = self.cuts.subscribe();
        async move { _ = cuts.wait_for(|cuts| *cuts).await }
    }

    /// A new connection to an engine.
    pub(crate) async fn connect(&self, engine: &str) -> Result<Connection, dial::Failure> {
        // Clients have left room for as many as there can be clients. Those in use are no more than that.
        if self.dialer.open() >= self.clients.most() {
            self.idle.close_one();
        }
        self.dialer.connect(engine).await
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
        let stream = Box::pin(Noted {
            stream: Box::pin(stream),
            phase: Arc::clone(&phase),
        });
        let is_spare = share.is_spare;
        let (worker, noted) = (Arc::clone(self), Arc::clone(&phase));
        let asking = client.clone();
        let service = service_fn(move |request| {
            Arc::clone(&worker).answer(asking.clone(), request, Arc::clone(&noted), is_spare)
        });
        let connection = http1::Builder::new()
            .max_buf_size(ANSWER_HELD)
            .max_header_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        let limits = Limits {
            idle: self.options.keepalive_timeout,
            head: self.options.client_idle_timeout,
        };
        let limits = match is_spare {
            false => limits,
            true => Limits {
                idle: SHORT,
                head: SHORT.min(limits.head),
            },
        };
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            worker.counters.own().connection_opened();
            // A client that breaks off is no error of ours.
            let one = worker.lingering.one();
            connection::serve(connection, phase, limits).await;
            client.linger(|| worker.patience()).await;
            drop((client, one));
            worker.counters.own().connection_closed();
            drop(share);
        });
    }

    /// For how long the end of a connection is waited for.
    fn patience(&self) -> Patience {
        match (self.clients.are_many(), self.is_draining()) {
            (true, _) => Patience::None,
            (false, true) => Patience::Received,
            (false, false) => Patience::Closed,
        }
    }

    async fn answer(
        self: Arc<Self>,
        client: Client,
        mut request: Request<Incoming>,
        phase: Arc<Phase>,
        is_spare: bool,
    ) -> Result<Response<Recorded>, Left> {
        let id = headers::request_id(request.headers_mut());
        let record = Record::begin(&self, &phase, client.address(), &mut request);
        let mut response = match is_spare {
            false => proxy::answer(self, client, request).await?,
            true => self.answer_briefly(request),
        };
        response.headers_mut().insert(headers::REQUEST_ID, id);
        Ok(record.answered(response))
    }

    /// Answers where there are descriptors for our own pages only.
    fn answer_briefly(&self, request: Request<Incoming>) -> Response<Reply> {
        let (head, _) = request.into_parts();
        let mut response = match status::page(&head) {
            Ok(Some(page)) => page(self),
            Ok(None) => Refusal::TooManyConnections.into_response(),
            Err(refusal) => refusal.into_response(),
        };
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response
    }
}
