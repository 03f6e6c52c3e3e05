//! The results, as text and as JSON.

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::fmt;

/// The shares of all requests, in percent, whose latency is kept for a curve.
const SHARES: [f64; 14] = [
    0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 100.0,
];

pub(crate) struct Report {
    pub(crate) engines: usize,
    pub(crate) clock: f64,
    pub(crate) rows: Vec<Row>,
}

/// One number of processes at one rate. Times in nanoseconds.
pub(crate) struct Row {
    processes: usize,
    /// Requests a second that were due; none: flat out.
    rate: Option<u64>,
    /// Whether requests were routed when they were due, or nothing was done.
    routes: bool,
    /// Requests a second that were sent.
    sent: f64,
    requests: u64,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
    mean: f64,
    curve: Vec<(f64, u64)>,
}

impl Row {
    pub(crate) fn new(
        processes: usize,
        rate: Option<u64>,
        routes: bool,
        milliseconds: u64,
        all: &Histogram<u64>,
    ) -> Self {
        Self {
            processes,
            rate,
            routes,
            sent: all.len() as f64 * 1e3 / milliseconds as f64,
            requests: all.len(),
            p50: all.value_at_percentile(50.0),
            p99: all.value_at_percentile(99.0),
            p999: all.value_at_percentile(99.9),
            max: all.max(),
            mean: all.mean(),
            curve: SHARES
                .map(|share| (share, all.value_at_percentile(share)))
                .into(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "processes": self.processes,
            "rate": self.rate,
            "routes": self.routes,
            "sent_per_second": self.sent,
            "requests": self.requests,
            "p50": self.p50,
            "p99": self.p99,
            "p99.9": self.p999,
            "max": self.max,
            "mean": self.mean,
            "curve": self.curve,
        })
    }
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        json!({
            "engines": self.engines,
            "clock": self.clock,
            "rows": self.rows.iter().map(Row::json).collect::<Value>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Route over {} engines, in nanoseconds from when it was due; about {:.0} of it is the clock",
            self.engines, self.clock
        )?;
        writeln!(
            f,
            "{:>7} {:>9} {:>10} {:>11} {:>9} {:>9} {:>9} {:>11}",
            "what", "processes", "due/s", "sent/s", "p50", "p99", "p99.9", "max"
        )?;
        for row in &self.rows {
            let rate = row.rate.map_or("flat out".to_owned(), |r| r.to_string());
            let what = if row.routes { "route" } else { "nothing" };
            writeln!(
                f,
                "{what:>7} {:9} {rate:>10} {:11.0} {:9} {:9} {:9} {:11}",
                row.processes, row.sent, row.p50, row.p99, row.p999, row.max
            )?;
        }
        Ok(())
    }
}
