//! How soon the kernel notices that the other end of a connection is gone without a word: its host has lost
//! power, or the link to it is down.

use crate::options::Options;
use rustix::net::sockopt;
use std::os::fd::AsFd;
use std::time::Duration;

/// TCP keepalive of connections, and the longest that what was sent may go unacknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    /// How long a connection is silent before the other end is asked for a sign of life. None: never.
    idle: Option<Duration>,
    gone: Duration,
}

/// How often the other end is asked.
const PROBES: u32 = 4;

impl Keepalive {
    pub(crate) fn of_engines(options: &Options) -> Self {
        Self::new(options.engine_keepalive, Duration::ZERO)
    }

    pub(crate) fn of_clients(options: &Options) -> Self {
        // To the kernel, one that does not read looks like one that is gone; and it may pause.
        Self::new(options.client_keepalive, options.client_idle_timeout)
    }

    fn new(idle: Duration, patience: Duration) -> Self {
        Self {
            idle: (!idle.is_zero()).then_some(idle),
            gone: (idle * 2).max(patience),
        }
    }

    /// Sets it for a connection, or for all that a listening socket will accept. A connection that is closed
    /// already does not take it, as will be noticed soon.
    pub(crate) fn apply(self, stream: impl AsFd + Copy) {
        let Some(idle) = self.idle else {
            return;
        };
        let second = Duration::from_secs(1);
        let set = || -> rustix::io::Result<()> {
            sockopt::set_socket_keepalive(stream, true)?;
            sockopt::set_tcp_keepidle(stream, idle.max(second))?;
            sockopt::set_tcp_keepintvl(stream, (idle / PROBES).max(second))?;
            sockopt::set_tcp_keepcnt(stream, PROBES)?;
            let gone = u32::try_from(self.gone.as_millis()).unwrap_or(u32::MAX);
            sockopt::set_tcp_user_timeout(stream, gone)
        };
        let _ = set();
    }
}
