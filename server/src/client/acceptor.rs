//! Accepts connections, as long as the process has descriptors for what they need.

use crate::client::descriptors::{Clients, Share};
use crate::log::say;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// How long a worker with too many clients leaves new ones to the other workers, and how long one without any
/// descriptor waits.
const OTHERS_FIRST: Duration = Duration::from_millis(50);
/// How many connections a worker with too many clients then accepts in a row.
const IN_A_ROW: u32 = 16;
/// A failure to accept is logged again when there was none like it for so long.
const LOGGED_AGAIN: Duration = Duration::from_secs(60);

/// Takes connections from the listening socket.
pub(crate) struct Acceptor<'a> {
    socket: &'a TcpListener,
    clients: &'a Arc<Clients>,
    /// How many more are accepted before the other workers may have some, while there are too many.
    in_a_row: Cell<u32>,
    /// The kinds of failure so far, each with its last time.
    failures: RefCell<BTreeMap<Option<i32>, Instant>>,
}

impl<'a> Acceptor<'a> {
    pub(crate) fn new(socket: &'a TcpListener, clients: &'a Arc<Clients>) -> Self {
        Self {
            socket,
            clients,
            in_a_row: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    /// Returns the next connection.
    pub(crate) async fn next(&self) -> (TcpStream, SocketAddr, Share) {
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
                // A lack of descriptors passes.
                Err(error) => {
                    self.log_failure(&error);
                    sleep(OTHERS_FIRST).await;
                }
            }
        }
    }

    fn log_failure(&self, error: &io::Error) {
        let mut failures = self.failures.borrow_mut();
        let last = failures.insert(error.raw_os_error(), Instant::now());
        if last.is_none_or(|last| last.elapsed() > LOGGED_AGAIN) {
            say(format_args!(
                "worker {}: cannot accept connections: {error}; trying again",
                std::process::id()
            ));
        }
    }
}

/// Lets the other workers, which the last connection has woken as well, accept the next one.
///
/// Without it, the worker that wakes first accepts a whole burst (a gateway's pool of connections, say), and is
/// the bottleneck for as long as those connections last. The sleep is shorter than the shortest one of the event
/// loop. To yield the processor instead would cost much more where many processes compete for it.
pub(crate) fn give_way() {
    std::thread::sleep(Duration::from_micros(20));
}
