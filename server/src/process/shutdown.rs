//! When a process is to end: it is told to, or its parent is gone.

use crate::error::Error;
use std::io;
use std::os::fd::AsFd;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask to end, and the lifeline: a pipe on standard input, whose other end only the
/// parent has. The kernel closes it with the parent, whatever that died of.
#[derive(Debug)]
pub(crate) struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
    lifeline: Option<Receiver>,
    /// `AT_ONCE`, for one with a lifeline.
    at_once: Option<Signal>,
    /// Taken note of, so that it does not end a process whose parent it was for.
    _hangup: Option<Signal>,
}

impl Shutdown {
    pub(crate) fn watch(has_lifeline: bool) -> Result<Self, Error> {
        let watch = || -> io::Result<Self> {
            let (mut lifeline, mut at_once, mut hangup) = (None, None, None);
            if has_lifeline {
                let input = io::stdin().as_fd().try_clone_to_owned()?;
                lifeline = Some(Receiver::from_owned_fd(input)?);
                at_once = Some(signal(SignalKind::from_raw(AT_ONCE.as_raw()))?);
                hangup = Some(signal(SignalKind::hangup())?);
            }
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                lifeline,
                at_once,
                _hangup: hangup,
            })
        };
        watch().map_err(|source| Error::system("watch for the end", source))
    }

    /// Returns when it is time to end, and says why.
    pub(crate) async fn requested(&mut self) -> &'static str {
        loop {
            match self.next().await {
                Step::End(why) => return why,
                Step::AtOnce => return "its parent's second signal",
                Step::Drain => {}
            }
        }
    }

    /// Returns when a process that ends already is to end at once.
    pub(crate) async fn at_once(&mut self) {
        told_at_once(&mut self.at_once).await;
    }

    /// What is to be done next.
    pub(crate) async fn next(&mut self) -> Step {
        tokio::select! {
            _ = self.terminate.recv() => Step::End("SIGTERM"),
            _ = self.interrupt.recv() => Step::End("SIGINT"),
            () = told_at_once(&mut self.at_once) => Step::AtOnce,
            word = word(self.lifeline.as_ref()) => word,
        }
    }
}

/// What a process is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It is to end soon: balancers shall send requests elsewhere.
    Drain,
    /// It is to end now, for this reason.
    End(&'static str),
    /// It is to end at once, and to cut what it has in flight.
    AtOnce,
}

/// The signal for `Step::AtOnce`. Not one that others send to all processes of a deployment, who mean the end
/// in order by it.
pub(crate) const AT_ONCE: rustix::process::Signal = rustix::process::Signal::USR1;

/// What the parent writes into the lifeline for `Step::Drain`; its end is the other word.
pub(crate) const DRAIN: &[u8] = b"drain\n";

async fn told_at_once(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

async fn word(lifeline: Option<&Receiver>) -> Step {
    let Some(lifeline) = lifeline else {
        return std::future::pending().await;
    };
    while lifeline.readable().await.is_ok() {
        match lifeline.try_read(&mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(1..) => return Step::Drain,
            _ => break,
        }
    }
    Step::End("the end of the parent")
}
