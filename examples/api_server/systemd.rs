//! What a supervisor is told, if it has asked to be: systemd's `Type=notify`.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Connections are answered from now on.
pub(crate) const READY: &str = "READY=1";
/// The end has begun.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Tells it, by a datagram to the socket that `NOTIFY_SOCKET` names (sd_notify(3)). That it does not listen
/// any more is no reason to fail.
pub(crate) fn notify(state: &str) {
    if let Some(name) = env::var_os("NOTIFY_SOCKET") {
        let name = name.as_bytes();
        let tell = || -> io::Result<()> {
            let address = match name.strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
            };
            UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
            Ok(())
        };
        let _ = tell();
    }
}
