//! How soon it is noticed that the other end of a connection is gone without a word: its host has lost power, or
//! the link to it is down.
//!
//! The kernel asks for a sign of life when nothing is under way (TCP keepalive). Of what is under way it can limit
//! how long that goes unacknowledged (`TCP_USER_TIMEOUT`); but to that limit, one that does not read looks like
//! one that is gone. A client has its own limit for reading, which serves for both. An engine may be slow to read,
//! so for engines we look ourselves whether acknowledgements come.

use crate::options::Options;
use rustix::net::sockopt;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// TCP keepalive of connections, and the longest that what was sent may go unacknowledged or unread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    /// How long a connection is silent before the other end is asked for a sign of life. None: never.
    idle: Option<Duration>,
    /// None: it is not the kernel that limits it.
    unread: Option<Duration>,
}

/// How often the other end is asked.
const PROBES: u32 = 4;

impl Keepalive {
    pub(crate) fn of_engines(options: &Options) -> Self {
        Self::new(options.engine_keepalive, None)
    }

    pub(crate) fn of_clients(options: &Options) -> Self {
        Self::new(options.client_keepalive, Some(options.client_idle_timeout))
    }

    fn new(idle: Duration, limit: Option<Duration>) -> Self {
        Self {
            idle: (!idle.is_zero()).then_some(idle),
            unread: limit.map(|limit| limit.max(idle * 2)),
        }
    }

    /// How often to look whether the other end is gone.
    pub(crate) fn check_every(self) -> Duration {
        let never = Duration::from_secs(86_400);
        (self.idle).map_or(never, |idle| {
            (idle / PROBES).max(Duration::from_millis(250))
        })
    }

    /// Whether nothing has come from the other end of a connection for as long as keepalive takes, though it was
    /// asked: what was sent was sent again, or it was asked twice in a row whether it reads again.
    pub(crate) fn is_gone(self, stream: impl AsFd) -> bool {
        let Some(idle) = self.idle else {
            return false;
        };
        // SAFETY: numbers all of them, for which zeros are valid.
        let mut info: libc::tcp_info = unsafe { zeroed() };
        let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: writes at most `size` bytes there.
        let got = unsafe {
            libc::getsockopt(
                stream.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut size,
            )
        };
        let was_asked = info.tcpi_retransmits > 0 || info.tcpi_probes > 1;
        let silent = Duration::from_millis(info.tcpi_last_ack_recv.into());
        got == 0 && was_asked && silent >= idle * 2
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
            let Some(unread) = self.unread else {
                return Ok(());
            };
            let unread = u32::try_from(unread.as_millis()).unwrap_or(u32::MAX);
            sockopt::set_tcp_user_timeout(stream, unread)
        };
        let _ = set();
    }
}
