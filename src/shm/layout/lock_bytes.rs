//! The bytes whose locks say what a process is.
//!
//! These are open-file-description locks. They have nothing to do with the data at those bytes.
//!
//! ```text
//!         0   the publisher
//!         1   the process that changes the list of engines
//!         2   the deployment
//!  16 + 4 s   the frontend in slot s
//!  17 + 4 s   with the byte before it: a process that reaps slot s, or looks whether it is free
//!    2^40 ..  canaries: locked for moments, to see whether a fork copies a lock
//! ```
//!
//! The length of a lock on a slot tells a frontend from the other processes. The kernel makes adjacent locks of one
//! open file into one, so no lock of a slot touches the next slot's.

/// The byte whose lock makes a process the publisher.
pub(crate) const PUBLISHER_LOCK: u64 = 0;
/// The byte whose lock lets a process change the list of engines.
pub(crate) const ENGINES_LOCK: u64 = 1;
/// The byte whose lock makes a process the deployment.
pub(crate) const DEPLOYMENT_LOCK: u64 = 2;
/// The byte whose lock makes a process the frontend in slot 0.
const FIRST_SLOT_LOCK: u64 = 16;
/// How far the locks of two slots are apart: more than the two bytes that a reaper locks.
const SLOT_LOCK_STRIDE: u64 = 4;

/// The byte whose lock makes a process the frontend in `slot`.
pub(crate) fn slot_lock(slot: usize) -> u64 {
    FIRST_SLOT_LOCK + SLOT_LOCK_STRIDE * slot as u64
}

/// From here on, bytes that are locked for moments, to see whether a fork copies the lock.
pub(crate) const FIRST_CANARY_LOCK: u64 = 1 << 40;
