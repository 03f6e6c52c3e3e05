//! Every process is one loop over one inbox; threads do nothing but fill it.

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::thread;

use serde::de::DeserializeOwned;

use crate::wire;

/// Puts every message that arrives from `from` into the inbox, and `hangup` when there are no more.
/// A line that is no message counts as a hang-up.
pub(crate) fn forward<M, I>(
    from: impl Read + Send + 'static,
    inbox: Sender<I>,
    input: impl Fn(M) -> I + Send + 'static,
    hangup: I,
) where
    M: DeserializeOwned,
    I: Send + 'static,
{
    thread::spawn(move || {
        for message in wire::receive(from).map_while(Result::ok) {
            if inbox.send(input(message)).is_err() {
                return;
            }
        }
        // The loop may be over already.
        let _ = inbox.send(hangup);
    });
}

/// Calls `greet` for every connection that is made to the listener.
pub(crate) fn accept(listener: UnixListener, mut greet: impl FnMut(UnixStream) + Send + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            greet(stream);
        }
    });
}
