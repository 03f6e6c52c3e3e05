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
/// any more is no reason to fail. False if it has so much to read that this has to be said again later.
pub(crate) fn notify(state: &str) -> bool {
    if let Some(name) = env::var_os("NOTIFY_SOCKET") {
        let name = name.as_bytes();
        let tell = || -> io::Result<()> {
            let address = match name.strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
            };
            let socket = UnixDatagram::unbound()?;
            // A supervisor that does not read shall not stop the parent.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), &address)?;
            Ok(())
        };
        return !tell().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    }
    true
}
