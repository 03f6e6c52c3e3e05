//! A connection, read byte by byte as strictly as can be.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why nothing more can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    Ended,
    Reset,
    /// Nothing came in time.
    Silent,
}

/// A connection, and what has come on it and was not taken yet.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Arc<TcpStream>,
    buffer: Vec<u8>,
    patience: Duration,
}

impl Wire {
    pub(crate) fn new(stream: Arc<TcpStream>, patience: Duration) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            patience,
        }
    }

    /// How long to wait for more.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// What has come and was not taken.
    pub(crate) fn left(&self) -> &[u8] {
        &self.buffer
    }

    /// Waits for more.
    pub(crate) fn more(&mut self) -> Result<(), Stop> {
        let mut piece = [0; 1 << 16];
        let start = Instant::now();
        loop {
            let left = self.patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(Stop::Silent);
            }
            // Fails only for no time at all.
            let _ = self.stream.set_read_timeout(Some(left));
            match (&*self.stream).read(&mut piece) {
                Ok(0) => return Err(Stop::Ended),
                Ok(length) => {
                    self.buffer.extend(&piece[..length]);
                    return Ok(());
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(Stop::Reset),
                },
            }
        }
    }

    /// Takes everything up to this mark, with the mark.
    pub(crate) fn through(&mut self, mark: &[u8]) -> Result<Vec<u8>, Stop> {
        let mut from = 0;
        loop {
            let found = self.buffer[from..]
                .windows(mark.len())
                .position(|part| part == mark);
            if let Some(found) = found {
                return Ok(self.buffer.drain(..from + found + mark.len()).collect());
            }
            from = self.buffer.len().saturating_sub(mark.len() - 1);
            self.more()?;
        }
    }

    /// Takes so many bytes, as far as they come.
    pub(crate) fn take(&mut self, count: usize, into: &mut Vec<u8>) -> Result<(), Stop> {
        let mut count = count;
        loop {
            let now = count.min(self.buffer.len());
            into.extend(self.buffer.drain(..now));
            count -= now;
            if count == 0 {
                return Ok(());
            }
            self.more()?;
        }
    }

    /// Takes everything up to the end.
    pub(crate) fn rest(&mut self, into: &mut Vec<u8>) -> Stop {
        loop {
            into.append(&mut self.buffer);
            if let Err(stop) = self.more() {
                return stop;
            }
        }
    }

    /// Sends. The other side may be gone, or not read.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&*self.stream).write_all(bytes)
    }

    pub(crate) fn half_close(&self) {
        // Fails if the other side is gone.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes the connection so that the other side gets a reset. All who share the stream have to be gone.
    pub(crate) fn reset(self) {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: the descriptor is open, and the option is of the type and length that are said.
        let result = unsafe {
            libc::setsockopt(
                self.stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }
}
