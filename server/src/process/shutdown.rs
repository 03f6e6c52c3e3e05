//! Learns that a process is to end: by a signal, or because its parent is gone.

use crate::error::Error;
use std::io;
use std::os::fd::AsFd;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a process to end, and its lifeline: a pipe on standard input, of which only the parent has
/// the other end. The kernel closes it with the parent, whatever the parent died of.
#[derive(Debug)]
pub(crate) struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
    lifeline: Option<Receiver>,
    /// `AT_ONCE`, for a process with a lifeline.
    at_once: Option<Signal>,
    /// SIGHUP, for a process with a lifeline: from the parent, or for the parent and sent to all.
    hangup: Option<Signal>,
}

impl Shutdown {
    pub(crate) fn watch(has_lifeline: bool) -> Result<Self, Error> {
        let watch = || -> io::Result<Self> {
            let (mut lifeline, mut at_once, mut hangup) = (None, None, None);
            if has_lifeline {
                let input = io::stdin().as_fd().try_clone_to_owned()?;
                lifeline = Some(Receiver::from_owned_fd(input)?);
                at_once = Some(signal(SignalKind::from_raw(AT_ONCE.as_raw()))?);
                hangup = Some(signal(SignalKind::from_raw(RELOAD.as_raw()))?);
            }
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                lifeline,
                at_once,
                hangup,
            })
        };
        watch().map_err(|source| Error::system("watch for the end", source))
    }

    /// Returns when the process is to end, with the reason.
    pub(crate) async fn requested(&mut self) -> &'static str {
        loop {
            match self.next().await {
                Step::End(why) => return why,
                Step::AtOnce => return "its parent's second signal",
                Step::Drain | Step::Reload => {}
            }
        }
    }

    /// Returns when a process that is ending already is to end at once.
    pub(crate) async fn at_once(&mut self) {
        received(&mut self.at_once).await;
    }

    /// Returns the next step of the shutdown, as soon as it is due.
    pub(crate) async fn next(&mut self) -> Step {
        tokio::select! {
            _ = self.terminate.recv() => Step::End("SIGTERM"),
            _ = self.interrupt.recv() => Step::End("SIGINT"),
            () = received(&mut self.at_once) => Step::AtOnce,
            () = received(&mut self.hangup) => Step::Reload,
            step = step_of(self.lifeline.as_ref()) => step,
        }
    }
}

/// A step of a shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Read again what may have changed, and go on. No step of a shutdown, but it comes the same way.
    Reload,
    /// The end is near: balancers are to send requests elsewhere.
    Drain,
    /// End now, for this reason.
    End(&'static str),
    /// End at once, and cut the requests in flight.
    AtOnce,
}

/// The signal for `Step::AtOnce`. A supervisor does not send it to all processes of a deployment, as it
/// does SIGTERM for an end in order.
pub(crate) const AT_ONCE: rustix::process::Signal = rustix::process::Signal::USR1;

/// The signal for `Step::Reload`.
pub(crate) const RELOAD: rustix::process::Signal = rustix::process::Signal::HUP;

/// What the parent writes into the lifeline for `Step::Drain`. The end of the lifeline stands for `Step::End`.
pub(crate) const DRAIN: &[u8] = b"drain\n";

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

async fn step_of(lifeline: Option<&Receiver>) -> Step {
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
