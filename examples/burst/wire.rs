//! The messages between the processes: one line of JSON a message.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A request: `tokens` of prompt, and as many decode steps as it will generate tokens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) tokens: u32,
    pub(crate) steps: u32,
}

/// What an engine says of itself at the end of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stats {
    pub(crate) waiting: u32,
    pub(crate) running: u32,
    pub(crate) kv_usage: f32,
}

/// To the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToCoordinator {
    /// From a frontend: broadcast to this connection.
    Subscribe,
    /// From an engine.
    Report { engine: usize, stats: Stats },
}

/// From the coordinator to the frontends: the last statistics of each engine.
pub(crate) type Broadcast = Vec<Stats>;

/// From an engine to a frontend, at the end of a step: these requests are finished.
pub(crate) type Finished = Vec<u64>;

/// From the parent to a child, on its standard input. The end of the input ends the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// To a frontend: a client sends this request.
    Submit(Request),
    /// To a frontend: how many requests are unfinished, as far as you know?
    Count,
    /// To an engine: hand over all changes since the last time you were asked.
    Log,
}

/// From a child to the parent, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    Ready,
    /// From a frontend: these requests are answered, and no longer counted.
    Finished(Finished),
    /// From a frontend: the request has a place, since this time of the [clock](crate::clock).
    Placed {
        id: u64,
        at: Duration,
    },
    /// From a frontend: every engine is at its cap, so this request was not sent.
    Refused(u64),
    Counted(u64),
    Log(Vec<Entry>),
    Failed(String),
    /// Its standard output has closed. Added by the parent.
    Gone,
}

/// One change of what an engine has in flight.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// By the [clock](crate::clock) of the host.
    pub(crate) at: Duration,
    /// The connection of its frontend, by a number.
    pub(crate) from: u64,
    pub(crate) change: Change,
    pub(crate) tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    Received,
    Finished,
    /// Its frontend has died.
    Aborted,
    /// The frontend has died, and whatever it had sent is aborted.
    HungUp,
}

/// Writes a message at once, so that lines of several threads do not mix.
pub(crate) fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// The messages from the other side, until it hangs up.
pub(crate) fn receive<M: DeserializeOwned>(from: impl Read) -> impl Iterator<Item = io::Result<M>> {
    BufReader::new(from)
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
}
