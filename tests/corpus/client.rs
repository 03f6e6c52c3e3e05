//! A client on a raw socket, which acts the steps of a case and observes the result.

use crate::case::{Case, Client};
use crate::engine::{Lane, PROBE};
use crate::message::{Framing, Message};
use crate::wire::{Stop, Wire};
use headcount::Table;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits if none is expected.
const SHORT: Duration = Duration::from_secs(1);

/// What a client has received.
#[derive(Debug, Default)]
pub(crate) struct Got {
    pub(crate) answers: Vec<Message>,
    pub(crate) end: End,
    /// Faults, whatever the other fronts do.
    pub(crate) wrongs: Vec<String>,
}

/// The state of a connection after all steps of the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// The client left.
    #[default]
    Left,
    /// Another request was answered on it.
    Kept,
    Closed,
    /// It is open, and nothing more comes.
    Silent,
    /// Something other than the answer to another request came.
    Odd(String),
}

/// Acts the client of a case. `table` is `headcount-server`'s. `is_silent` if the connection is expected to
/// be left open and of no use.
pub(crate) fn act(
    case: &Case,
    front: SocketAddr,
    lane: &Lane,
    table: Option<&Table>,
    is_silent: bool,
) -> Got {
    let patience = if is_silent { SHORT } else { PATIENCE };
    let stream = Arc::new(TcpStream::connect(front).unwrap());
    stream.set_nodelay(true).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut wire = Wire::new(stream, patience);
    let mut got = Got::default();
    for step in &case.client {
        match step {
            // A front that has refused already may have closed.
            Client::Send(bytes) => drop(wire.send(bytes)),
            Client::Pause(time) => thread::sleep(Duration::from_millis(*time)),
            Client::UntilAsked => lane.wait_for_heads(1, PATIENCE),
            Client::UntilAnsweredOrASecond => {
                wire.set_patience(SHORT);
                // Without an answer, the client sends its body all the same.
                let _ = wire.more();
                wire.set_patience(patience);
            }
            Client::UntilAnswered => {
                // If nothing comes, the reading below notices.
                let _ = wire.more();
            }
            Client::Holds(places) => {
                if let Some(table) = table
                    && let Err(wrong) = holds(table, *places)
                {
                    got.wrongs.push(wrong);
                }
            }
            Client::HalfClose => wire.half_close(),
            Client::Leave => return got,
            Client::Reset => {
                wire.reset();
                return got;
            }
        }
    }
    got.end = read(case, &mut wire, &mut got.answers);
    got
}

/// Reads the answers, and finds the state of the connection after them.
fn read(case: &Case, wire: &mut Wire, answers: &mut Vec<Message>) -> End {
    let mut left = case.answers;
    while left > 0 {
        let answer = match answer(wire, case.asks_for_head()) {
            Ok(answer) => answer,
            Err(stop) => return ended(stop, wire),
        };
        let interim = answer.second_word().starts_with('1') && answer.second_word() != "101";
        left -= usize::from(!interim);
        let (closes, is_whole) = (closes(&answer), answer.is_whole);
        answers.push(answer);
        if closes || !is_whole {
            return ended(wire.more().err().unwrap_or(Stop::Silent), wire);
        }
    }
    if case.half_closes() {
        return ended(wire.more().err().unwrap_or(Stop::Silent), wire);
    }
    thread::sleep(Duration::from_millis(case.rest));
    let probe = format!("GET {PROBE} HTTP/1.1\r\nHost: t\r\n\r\n");
    if wire.send(probe.as_bytes()).is_err() {
        return End::Closed;
    }
    match answer(wire, false) {
        Err(stop) => ended(stop, wire),
        Ok(answer) if answer.body == format!("GET {PROBE} end").as_bytes() => End::Kept,
        Ok(answer) => End::Odd(format!(
            "{} {} {}",
            answer.second_word(),
            answer.framing,
            answer.body_in_short()
        )),
    }
}

fn ended(stop: Stop, wire: &Wire) -> End {
    match (wire.left(), stop) {
        ([], Stop::Ended | Stop::Reset) => End::Closed,
        ([], Stop::Silent) => End::Silent,
        (left, _) => End::Odd(crate::message::in_short(left)),
    }
}

/// An answer, interim or not.
fn answer(wire: &mut Wire, has_no_body: bool) -> Result<Message, Stop> {
    let mut answer = Message::read_head(wire)?;
    let status = answer.second_word();
    let bare = status.starts_with('1') || status == "204" || status == "304" || has_no_body;
    if bare {
        answer.is_whole = true;
        return Ok(answer);
    }
    if answer.framing == Framing::None {
        answer.framing = Framing::Close;
    }
    answer.read_body(wire);
    Ok(answer)
}

/// Whether an answer says that the connection ends.
fn closes(answer: &Message) -> bool {
    let said = answer.all("connection").join(",").to_lowercase();
    let old = answer.start.starts_with("HTTP/1.0") && !said.contains("keep-alive");
    said.contains("close") || old || answer.framing == Framing::Close
}

/// Whether the table counts so many requests: soon, if any are expected; for a while, if none are.
fn holds(table: &Table, places: u32) -> Result<(), String> {
    let limit = Duration::from_secs(if places == 0 { 0 } else { 20 });
    let start = Instant::now();
    let mut good = 0;
    loop {
        let held: u32 = table.view().engines.iter().map(|e| e.in_flight).sum();
        good = if held == places { good + 1 } else { 0 };
        if good == 10 {
            return Ok(());
        }
        if good == 0 && start.elapsed() > limit {
            return Err(format!("holds {held} places where {places} are due"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}
