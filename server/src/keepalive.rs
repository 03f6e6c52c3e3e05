//! Notices that the other end of a connection is gone without closing it: its host has lost power, or the
//! link is down.
//!
//! On a silent connection the kernel asks the other end for a sign of life (TCP keepalive). For bytes under
//! way, it can limit how long they stay unacknowledged (`TCP_USER_TIMEOUT`); but that limit does not tell
//! an end that does not read from one that is gone. Clients have a limit for reading anyway, which serves
//! for both. Engines may be slow to read, so for them this module checks itself whether acknowledgements
//! come.

use crate::options::Options;
use rustix::net::sockopt;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// TCP keepalive of connections, and how long sent bytes may stay unacknowledged or unread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    /// How long a connection may be silent before the kernel asks for a sign of life. `None`: for ever.
    idle: Option<Duration>,
    /// `None`: the kernel sets no limit.
    unread: Option<Duration>,
}

/// How often the kernel asks before it gives up.
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

    /// Returns how often to check whether the other end is gone.
    pub(crate) fn check_every(self) -> Duration {
        let never = Duration::from_secs(86_400);
        (self.idle).map_or(never, |idle| {
            (idle / PROBES).max(Duration::from_millis(250))
        })
    }

    /// Whether the other end has been silent for the whole time of keepalive, though the kernel asked it:
    /// by sending bytes again, or by probing twice in a row whether it reads again.
    pub(crate) fn is_gone(self, stream: impl AsFd) -> bool {
        let Some(idle) = self.idle else {
            return false;
        };
        // SAFETY: the struct has numbers only, for which zeros are valid.
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

    /// Applies the settings to a connection, or to all connections that a listening socket will accept.
    /// Fails without notice on a connection that is closed already.
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
