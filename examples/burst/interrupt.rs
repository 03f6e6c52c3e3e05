//! Ctrl-C ends the run in order: children are killed and files removed on the way out.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on the signals that ask a program to stop are only noted; see [`check`].
pub(crate) fn watch() -> Result<(), Error> {
    let handler = note as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `note` has the type of a handler, lives as long as the program, and does nothing
        // but store to an atomic, which is allowed at any moment that a signal can come.
        let previous = unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        if previous == libc::SIG_ERR {
            return Err(Error::Signals(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Fails once such a signal has come.
pub(crate) fn check() -> Result<(), Error> {
    // Relaxed: the flag is all there is to see.
    if REQUESTED.load(Ordering::Relaxed) {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}

extern "C" fn note(_signal: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}
