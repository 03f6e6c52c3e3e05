//! A worker: accepts connections, until it is to end.

use crate::affinity::Affinity;
use crate::client::Client;
use crate::dial::Dialer;
use crate::error::Error;
use crate::exchange::Idle;
use crate::lifeline::End;
use crate::listener;
use crate::notice::say;
use crate::options::Options;
use crate::proxy;
use headcount::{Frontend, Table};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// How often old connections to engines are closed, and the engines for affinity are looked up.
const HOUSEKEEPING: Duration = Duration::from_millis(250);

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
}

pub(crate) async fn serve(descriptor: RawFd, options: Options) -> Result<(), Error> {
    let socket = listener::inherited(descriptor)?;
    let mut end = End::watch(options.lifeline)?;
    let table = Table::options().inherited()?;
    let frontend = table.join()?.with_policy(options.policy());
    let worker = Arc::new(Worker {
        idle: Arc::default(),
        dialer: Dialer::new(&options),
        affinity: Affinity::new(&options, &table),
        table,
        frontend,
        options,
    });
    let connections = GracefulShutdown::new();
    let mut housekeeping = interval(HOUSEKEEPING);
    housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            (stream, peer) = accept(&socket) => {
                worker.serve_client(stream, peer, &connections);
                give_way();
            }
            _ = housekeeping.tick() => {
                worker.idle.close_old();
                worker.affinity.look_up(&worker.table);
            }
            _ = end.comes() => break,
        }
    }
    // Those who are connected already are served. If other workers go on, so is who comes later.
    while let Ok((stream, peer)) = timeout(Duration::ZERO, accept(&socket)).await {
        worker.serve_client(stream, peer, &connections);
        tokio::task::yield_now().await;
    }
    drop(socket);
    let finishing = timeout(worker.options.drain_timeout, connections.shutdown());
    if finishing.await.is_err() {
        say(format_args!(
            "worker {}: ending with requests in flight, after the time of --drain-timeout",
            std::process::id()
        ));
    }
    Ok(())
}

/// The next connection. Having no descriptor for it is no reason to stop.
async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                say(format_args!(
                    "cannot accept a connection: {error}; trying again"
                ));
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The other workers were woken as well: lets them have the next connection.
///
/// Without it, whoever wakes first takes all of a burst, a gateway's pool of connections, say, and is
/// the bottleneck for as long as they last. The sleep is shorter than one of the event loop can be.
/// Yielding the processor instead costs much more than that where many processes compete for it.
fn give_way() {
    std::thread::sleep(Duration::from_micros(20));
}

impl Worker {
    fn serve_client(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        connections: &GracefulShutdown,
    ) {
        let (client, socket) = Client::new(stream, peer);
        let mut stream = TimeoutStream::new(socket);
        stream.set_write_timeout(Some(self.options.client_idle_timeout));
        let worker = Arc::clone(self);
        let service =
            service_fn(move |request| proxy::answer(Arc::clone(&worker), client.clone(), request));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.client_idle_timeout)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        let connection = connections.watch(connection);
        // A client that breaks off is no error of ours, and there is nobody to tell.
        tokio::spawn(async move { drop(connection.await) });
    }
}
