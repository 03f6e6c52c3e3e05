//! A role that one process of a table has at a time: to publish, or to be its deployment.

use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::error::Result;
use crate::shm::{Kept, KeptLock, ProcessToken};
use crate::table::Table;
use std::os::fd::AsFd;

/// A role that this process has. It is free again when this is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Role {
    /// Holding this is having the role.
    _lock: KeptLock,
    process: ProcessToken,
}

impl Role {
    /// Takes the role whose lock is that byte, and notes this process as its holder. The holder's pid if
    /// another process has it.
    pub(crate) fn take(
        table: &Table,
        byte: u64,
        holder: &AtomicU64,
        doing: &'static str,
    ) -> Result<Result<Self, u32>> {
        table.writable()?;
        let failed = |e| table.failed(doing, e);
        let process = ProcessToken::current().map_err(failed)?;
        let kept = KeptLock::take(table.as_fd(), |lock| {
            Ok(lock.try_lock_byte(byte)?.then_some(()))
        });
        // Relaxed, both: for a message.
        // A place that a child may have a copy of is as good until this process dies.
        let Some(Kept { lock, .. }) = kept.map_err(failed)? else {
            return Ok(Err(holder.load(Ordering::Relaxed) as u32));
        };
        holder.store(std::process::id().into(), Ordering::Relaxed);
        Ok(Ok(Self {
            _lock: lock,
            process,
        }))
    }

    /// Whether this process has taken it, and not one that it was forked from.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_current()
    }
}
