//! Tells a supervisor that the deployment is ready, or stopping: systemd's `Type=notify`.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The deployment answers requests from now on.
pub(crate) const READY: &str = "READY=1";
/// The deployment is ending.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Sends a state to the socket that `NOTIFY_SOCKET` names, if it is set (sd_notify(3)). A supervisor that has gone
/// is no failure. Returns false if the socket is full, so that the state has to be sent again later.
pub(crate) fn notify(state: &str) -> bool {
    if let Some(name) = env::var_os("NOTIFY_SOCKET") {
        let name = name.as_bytes();
        let tell = || -> io::Result<()> {
            let address = match name.strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
            };
            let socket = UnixDatagram::unbound()?;
            // A supervisor that does not read must not stop the parent.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), &address)?;
            Ok(())
        };
        return !tell().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    }
    true
}
