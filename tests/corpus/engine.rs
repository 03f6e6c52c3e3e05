//! An engine on raw sockets, which acts the steps of a case for each request.

use crate::case::{Case, Engine, Reads};
use crate::message::{Framing, Message};
use crate::wire::{Stop, Wire};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The target of the request by which a client checks whether its connection can still be used.
pub(crate) const PROBE: &str = "/probe";

/// How long an engine waits for the rest of a request, or to learn that a client has left.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it waits to learn that if it is not expected to.
const SHORT: Duration = Duration::from_secs(1);

/// The engine of a lane, which acts one case after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    now: Mutex<Now>,
    changed: Condvar,
}

/// The case that is acted now.
#[derive(Debug, Default)]
struct Now {
    case: Option<Arc<Case>>,
    is_told_surely: bool,
    seen: Seen,
    connections: usize,
    /// The number of the first one of the case.
    first: usize,
    /// The other end of a connection of our own, until it is taken in.
    barrier: Option<SocketAddr>,
    /// Connections on which the engine acts the case.
    acting: usize,
    open: Vec<(usize, Arc<TcpStream>)>,
}

/// The observations of the engine in a case.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Vec<Message>,
    /// Heads that have come, also those whose body has not.
    pub(crate) heads: usize,
    /// Requests that were answered with a byte at least, the probe included.
    pub(crate) answered: usize,
    /// Whether the connection was closed before the answer was over, each time that was waited for.
    pub(crate) told: Vec<bool>,
    /// Bytes that are not a whole head.
    pub(crate) pieces: Vec<Vec<u8>>,
}

impl Lane {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let lane = Self { address, shared };
        let acting = lane.clone();
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lane = acting.clone();
                let stream = Arc::new(stream);
                let mut now = lane.now();
                if now.barrier.is_some() && now.barrier == stream.peer_addr().ok() {
                    now.barrier = None;
                    lane.shared.changed.notify_all();
                    continue;
                }
                let Some(case) = now.case.clone() else {
                    continue;
                };
                now.connections += 1;
                let number = now.connections;
                let is_first = number == now.first;
                now.open.push((number, Arc::clone(&stream)));
                drop(now);
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let wire = Wire::new(stream, PATIENCE);
                    Connection {
                        lane: &lane,
                        case: &case,
                        number,
                        is_first,
                        wire: Some(wire),
                    }
                    .act();
                    lane.now().open.retain(|(other, _)| *other != number);
                    lane.shared.changed.notify_all();
                });
            }
        });
        lane
    }

    /// Acts this case from now on. `is_told_surely`: the front is expected to tell the engine of a client that
    /// leaves.
    pub(crate) fn begin(&self, case: &Arc<Case>, is_told_surely: bool) {
        let mut now = self.now();
        now.case = Some(Arc::clone(case));
        now.is_told_surely = is_told_surely;
        now.seen = Seen::default();
        now.first = now.connections + 1;
    }

    /// Waits until so many heads have come, for a limited time.
    pub(crate) fn wait_for_heads(&self, count: usize, limit: Duration) {
        let now = self.now();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(now, limit, |now| now.seen.heads < count);
        drop(waited.unwrap());
    }

    /// Waits until every connection that the front has opened by now is taken in.
    fn take_all_in(&self) {
        // They are taken in one after the other, so one of our own comes after them.
        let mut now = self.now();
        let own = TcpStream::connect(self.address).unwrap();
        now.barrier = Some(own.local_addr().unwrap());
        let taken = (self.shared.changed).wait_while(now, |now| now.barrier.is_some());
        drop(taken.unwrap());
    }

    /// Waits until the engine has acted all steps of the case.
    pub(crate) fn wait_until_done(&self) {
        self.take_all_in();
        let limit = PATIENCE + Duration::from_secs(10);
        let now = self.now();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(now, limit, |now| now.acting > 0);
        assert!(
            !waited.unwrap().1.timed_out(),
            "the engine ends what it does"
        );
    }

    /// Ends all connections, waits until the front has noticed, and returns the observations.
    pub(crate) fn end(&self) -> Seen {
        // Connections that come from now on are closed at once.
        self.now().case = None;
        self.take_all_in();
        for (how, limit) in [(Shutdown::Write, 3), (Shutdown::Both, 20)] {
            let mut now = self.now();
            for (_, stream) in &now.open {
                // Fails if the other side has closed already.
                let _ = stream.shutdown(how);
            }
            let limit = Instant::now() + Duration::from_secs(limit);
            while !now.open.is_empty() && Instant::now() < limit {
                let waited = self
                    .shared
                    .changed
                    .wait_timeout(now, Duration::from_millis(100));
                now = waited.unwrap().0;
            }
        }
        let mut now = self.now();
        assert!(now.open.is_empty(), "connections end");
        std::mem::take(&mut now.seen)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.shared.now.lock().unwrap()
    }

    fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> T {
        let noted = note(&mut self.now().seen);
        self.shared.changed.notify_all();
        noted
    }
}

struct Connection<'a> {
    lane: &'a Lane,
    case: &'a Case,
    number: usize,
    /// Whether it is the first one of the case.
    is_first: bool,
    /// `None` once it is closed.
    wire: Option<Wire>,
}

impl Connection<'_> {
    fn act(&mut self) {
        let case = self.case;
        if case.reads == Reads::Nothing && self.is_first {
            self.lane.note(|seen| seen.answered += 1);
            self.answer("");
        }
        while let Some(wire) = &mut self.wire {
            let mut request = match Message::read_head(wire) {
                Ok(request) => request,
                Err(_) => {
                    let left = wire.left().to_vec();
                    if !left.is_empty() {
                        self.lane.note(|seen| seen.pieces.push(left));
                    }
                    return;
                }
            };
            self.lane.note(|seen| seen.heads += 1);
            let start = request.start.clone();
            let is_probe = request.second_word() == PROBE;
            let early = case.reads == Reads::Head && !is_probe;
            if early {
                self.reply(&start, is_probe);
            }
            let stop = match &mut self.wire {
                Some(wire) => request.read_body(wire),
                None => Some(Stop::Ended),
            };
            let is_clear = request.doubts.is_empty() && request.framing != Framing::Close;
            self.lane.note(|seen| seen.requests.push(request));
            if stop.is_some() || !is_clear {
                return;
            }
            let ignored = case.reads == Reads::Nothing && self.is_first;
            if !early && (is_probe || !ignored) {
                self.reply(&start, is_probe);
            }
        }
    }

    fn reply(&mut self, start: &str, is_probe: bool) {
        let says = |step: &Engine| matches!(step, Engine::Send(_) | Engine::Echo);
        if is_probe || self.case.engine.iter().any(says) {
            self.lane.note(|seen| seen.answered += 1);
        }
        match is_probe {
            true => self.echo(start),
            false => self.answer(start),
        }
    }

    fn answer(&mut self, start: &str) {
        self.lane.now().acting += 1;
        self.take_steps(start);
        self.lane.now().acting -= 1;
        self.lane.shared.changed.notify_all();
    }

    fn take_steps(&mut self, start: &str) {
        for step in &self.case.engine {
            let Some(wire) = &self.wire else { return };
            match step {
                Engine::Echo => self.echo(start),
                // Fails if the front has closed the connection.
                Engine::Send(bytes) => drop(wire.send(bytes)),
                Engine::Pause(time) => thread::sleep(Duration::from_millis(*time)),
                Engine::UntilTold => {
                    let limit = match self.lane.now().is_told_surely {
                        true => PATIENCE,
                        false => SHORT,
                    };
                    let is_told = self.is_told(limit);
                    self.lane.note(|seen| seen.told.push(is_told));
                    if is_told {
                        self.close();
                    }
                }
                Engine::Close => drop(self.close()),
                Engine::Reset => {
                    if let Some(wire) = self.close() {
                        wire.reset();
                    }
                }
            }
        }
    }

    fn echo(&self, start: &str) {
        let line = start.trim_end_matches(" HTTP/1.1");
        let body = match line.len() {
            0..=60 => format!("{line} end"),
            length => format!("{length} bytes end"),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let body = if line.starts_with("HEAD ") { "" } else { &body };
        if let Some(wire) = &self.wire {
            // Fails if the front has closed the connection.
            let _ = wire.send(format!("{head}{body}").as_bytes());
        }
    }

    fn is_told(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        let Some(wire) = &mut self.wire else {
            return true;
        };
        wire.set_patience(Duration::from_millis(20));
        let mut is_told = false;
        while !is_told && start.elapsed() < limit {
            is_told = matches!(wire.more(), Err(Stop::Ended | Stop::Reset));
        }
        wire.set_patience(PATIENCE);
        is_told
    }

    /// Gives the connection up, so that it is closed when what is returned is dropped.
    fn close(&mut self) -> Option<Wire> {
        self.lane
            .now()
            .open
            .retain(|(other, _)| *other != self.number);
        self.wire.take()
    }
}
