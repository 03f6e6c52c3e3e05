//! Counters of all workers, in memory that they share: any worker answers for all, and the counts of a dead worker
//! remain.
//!
//! Each worker has memory pages of its own. The worker that replaces it goes on there.

use crate::error::Error;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fmt::{Display, Write};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The most workers.
pub(crate) const WORKERS: usize = 64;

/// Upper bounds of the buckets of durations, in seconds. A last bucket has the longer ones.
pub(crate) const BOUNDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// The codes of the errors that are counted. The last one stands for codes that are missing here.
pub(crate) const REASONS: [&str; 24] = [
    "engines_saturated",
    "queue_full",
    "queue_timeout",
    "invalid_class",
    "invalid_tenant",
    "too_many_sequences",
    "no_engine",
    "engine_broke_off",
    "engine_timeout",
    "no_connection",
    "table",
    "body_too_large",
    "body_timeout",
    "body_broken_off",
    "length_required",
    "nested_too_deeply",
    "invalid_host",
    "invalid_target",
    "transfer_coding_not_supported",
    "method_not_allowed",
    "upgrade_not_supported",
    "too_many_connections",
    "shutdown",
    "other",
];

/// How many statuses are counted, from 100 on.
const STATUSES: usize = 500;

/// The counts of one worker. Each only grows, except `connections`.
#[derive(Debug)]
#[repr(C, align(4096))]
pub(crate) struct WorkerCounts {
    statuses: [AtomicU64; STATUSES],
    durations: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
    reasons: [AtomicU64; REASONS.len()],
    accepted: AtomicU64,
    /// Clients' connections that are open now.
    connections: AtomicU64,
    /// Bytes of the bodies of answers.
    sent: AtomicU64,
}

/// The mapped counts of all workers.
#[derive(Debug)]
pub(crate) struct Counters {
    memory: MmapRaw,
    own: usize,
}

impl Counters {
    /// Makes the memory, which all processes started from now on inherit. Returns its descriptor.
    pub(crate) fn create() -> Result<OwnedFd, Error> {
        let create = || {
            let memory = memfd_create("headcount-http", MemfdFlags::empty())?;
            ftruncate(&memory, (WORKERS * size_of::<WorkerCounts>()) as u64)?;
            Ok(memory)
        };
        create().map_err(|e: rustix::io::Errno| Error::system("make memory for counts", e.into()))
    }

    /// Maps the memory in a worker, by the descriptor and the number that the parent passed.
    pub(crate) fn inherited(descriptor: RawFd, own: usize) -> Result<Self, Error> {
        let failed = |source| Error::system("use the inherited counts", source);
        if descriptor < 3 || own >= WORKERS {
            return Err(failed(std::io::ErrorKind::InvalidInput.into()));
        }
        // SAFETY: the parent left this descriptor open for us alone to take; nothing in this process has
        // opened or closed one of that number, since this is among the first things that it does.
        let memory = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        // An access beyond a shorter file would be fatal.
        let needed = (WORKERS * size_of::<WorkerCounts>()) as u64;
        if memory.metadata().map_err(failed)?.len() != needed {
            return Err(failed(std::io::ErrorKind::InvalidData.into()));
        }
        let memory = MmapOptions::new().map_raw(&memory).map_err(failed)?;
        let counters = Self { memory, own };
        // The connections of the worker before this one ended with it.
        counters.own().connections.store(0, Relaxed);
        Ok(counters)
    }

    /// Returns this worker's own counts.
    pub(crate) fn own(&self) -> &WorkerCounts {
        self.of(self.own)
    }

    fn of(&self, worker: usize) -> &WorkerCounts {
        assert!(worker < WORKERS);
        let counts = self.memory.as_ptr().cast::<WorkerCounts>();
        // SAFETY: the memory has `WORKERS` of them, begins at a page as they do, and stays as long as we do.
        // They are integers that any bytes are, and are only accessed as atomics, by whatever process.
        unsafe { &*counts.wrapping_add(worker) }
    }

    /// Sums one count over all workers.
    pub(crate) fn sum(&self, count: impl Fn(&WorkerCounts) -> &AtomicU64) -> u64 {
        // The counts are read one after the other, which is good enough for a scrape.
        (0..WORKERS)
            .map(|worker| count(self.of(worker)).load(Relaxed))
            .sum()
    }
}

// Relaxed everywhere: the counts are only displayed, and lead to no other memory.
impl WorkerCounts {
    /// Counts a request that has ended with this status, after this time. `reason`: why no engine answered,
    /// if none did.
    pub(crate) fn ended(&self, status: u16, reason: Option<&str>, took: Duration, sent: u64) {
        if let Some(count) = (self.statuses).get(usize::from(status).wrapping_sub(100)) {
            add(count, 1);
        }
        if let Some(reason) = reason {
            let known = REASONS.iter().position(|known| *known == reason);
            debug_assert!(known.is_some(), "{reason} is not in REASONS");
            add(&self.reasons[known.unwrap_or(REASONS.len() - 1)], 1);
        }
        let seconds = took.as_secs_f64();
        let bound = BOUNDS.iter().position(|bound| seconds <= *bound);
        add(&self.durations[bound.unwrap_or(BOUNDS.len())], 1);
        add(&self.microseconds, took.as_micros() as u64);
        add(&self.sent, sent);
    }

    pub(crate) fn connection_opened(&self) {
        add(&self.accepted, 1);
        add(&self.connections, 1);
    }

    pub(crate) fn connection_closed(&self) {
        add(&self.connections, u64::MAX);
    }
}

/// Adds to a count. Only its own worker does, on one thread, so no other addition comes between.
fn add(count: &AtomicU64, number: u64) {
    count.store(count.load(Relaxed).wrapping_add(number), Relaxed);
}

impl Counters {
    /// Writes the counts in Prometheus' text format.
    pub(crate) fn write(&self, out: &mut String) {
        let name = "http_responses_total";
        let help = "Answers to clients, by status; 499: the client left before there was one.";
        describe(out, name, "counter", help);
        for status in 0..STATUSES {
            let count = self.sum(|counts| &counts.statuses[status]);
            if count > 0 {
                let label = format!("{{code=\"{}\"}}", status + 100);
                sample(out, name, &label, count);
            }
        }
        let name = "http_refusals_total";
        let help = "Requests that no engine answered, by the code of the error.";
        describe(out, name, "counter", help);
        for (number, reason) in REASONS.iter().enumerate() {
            let label = format!("{{reason=\"{reason}\"}}");
            sample(
                out,
                name,
                &label,
                self.sum(|counts| &counts.reasons[number]),
            );
        }
        let name = "http_request_duration_seconds";
        let help = "From the head of a request to the last byte of its answer.";
        describe(out, name, "histogram", help);
        let mut count = 0;
        for (number, bound) in BOUNDS
            .iter()
            .map(f64::to_string)
            .chain(["+Inf".to_owned()])
            .enumerate()
        {
            count += self.sum(|counts| &counts.durations[number]);
            let label = format!("{{le=\"{bound}\"}}");
            sample(out, &format!("{name}_bucket"), &label, count);
        }
        let seconds = self.sum(|counts| &counts.microseconds) as f64 / 1e6;
        sample(out, &format!("{name}_sum"), "", seconds);
        sample(out, &format!("{name}_count"), "", count);
        let help = "Bytes of the bodies of answers.";
        let bytes = self.sum(|counts| &counts.sent);
        describe(out, "http_sent_bytes_total", "counter", help);
        sample(out, "http_sent_bytes_total", "", bytes);
        let help = "Connections of clients that were accepted.";
        describe(out, "http_connections_accepted_total", "counter", help);
        let accepted = self.sum(|counts| &counts.accepted);
        sample(out, "http_connections_accepted_total", "", accepted);
        describe(
            out,
            "http_connections",
            "gauge",
            "Connections of clients that are open.",
        );
        sample(
            out,
            "http_connections",
            "",
            self.sum(|counts| &counts.connections),
        );
    }
}

// Writing to a string cannot fail.
fn describe(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        out,
        "# HELP headcount_{name} {help}\n# TYPE headcount_{name} {kind}"
    );
}

fn sample(out: &mut String, name: &str, labels: &str, value: impl Display) {
    let _ = writeln!(out, "headcount_{name}{labels} {value}");
}

/// What a worker is told to find the counts by.
pub(crate) fn number(memory: &OwnedFd) -> String {
    memory.as_raw_fd().to_string()
}
