//! When a process is to end: it is told to, or its parent is gone.

use crate::error::Error;
use std::io;
use std::os::fd::AsFd;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask to end, and the lifeline: a pipe on standard input, whose other end only the
/// parent has. The kernel closes it with the parent, whatever that died of.
#[derive(Debug)]
pub(crate) struct End {
    terminate: Signal,
    interrupt: Signal,
    lifeline: Option<Receiver>,
    /// Taken note of, so that it does not end a process whose parent it was for.
    _hangup: Option<Signal>,
}

impl End {
    pub(crate) fn watch(has_lifeline: bool) -> Result<Self, Error> {
        let watch = || -> io::Result<Self> {
            let (lifeline, hangup) = if has_lifeline {
                let input = io::stdin().as_fd().try_clone_to_owned()?;
                let hangup = signal(SignalKind::hangup())?;
                (Some(Receiver::from_owned_fd(input)?), Some(hangup))
            } else {
                (None, None)
            };
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                lifeline,
                _hangup: hangup,
            })
        };
        watch().map_err(|source| Error::system("watch for the end", source))
    }

    /// Returns when it is time to end, and says why.
    pub(crate) async fn comes(&mut self) -> &'static str {
        loop {
            if let Word::End(why) = self.next().await {
                return why;
            }
        }
    }

    /// What is to be done next.
    pub(crate) async fn next(&mut self) -> Word {
        tokio::select! {
            _ = self.terminate.recv() => Word::End("SIGTERM"),
            _ = self.interrupt.recv() => Word::End("SIGINT"),
            word = word(self.lifeline.as_ref()) => word,
        }
    }
}

/// What a process is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// It is to end soon: balancers shall send requests elsewhere.
    Drain,
    /// It is to end now, for this reason.
    End(&'static str),
}

/// What the parent writes into the lifeline for `Word::Drain`; its end is the other word.
pub(crate) const DRAIN: &[u8] = b"drain\n";

async fn word(lifeline: Option<&Receiver>) -> Word {
    let Some(lifeline) = lifeline else {
        return std::future::pending().await;
    };
    while lifeline.readable().await.is_ok() {
        match lifeline.try_read(&mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(1..) => return Word::Drain,
            _ => break,
        }
    }
    Word::End("the end of the parent")
}
