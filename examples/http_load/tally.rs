//! What came of the requests.

use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How long each request took that was answered with success.
    times: Vec<Duration>,
    statuses: BTreeMap<u16, u64>,
    /// Requests that broke off, and how the first of them did.
    failed: u64,
    failure: Option<String>,
    pub(crate) unanswered: u64,
}

impl Tally {
    pub(crate) fn add<E: ToString>(&mut self, answer: Result<StatusCode, E>, took: Duration) {
        match answer {
            Ok(status) => {
                *self.statuses.entry(status.as_u16()).or_default() += 1;
                if status.is_success() {
                    self.times.push(took);
                }
            }
            Err(error) => {
                self.failed += 1;
                self.failure.get_or_insert_with(|| error.to_string());
            }
        }
    }

    pub(crate) fn summary(mut self, seconds: u64) -> Value {
        self.times.sort_unstable();
        json!({
            "requests_per_second": self.times.len() as f64 / seconds as f64,
            "p50_ms": self.percentile(0.5),
            "p99_ms": self.percentile(0.99),
            "p999_ms": self.percentile(0.999),
            "max_ms": self.percentile(1.0),
            "statuses": self.statuses,
            "failed": self.failed,
            "failure": self.failure,
            "unanswered": self.unanswered,
        })
    }

    /// The time within which such a share of the requests was answered.
    fn percentile(&self, share: f64) -> Option<f64> {
        let rank = (self.times.len() as f64 * share).ceil() as usize;
        let time = self.times.get(rank.max(1) - 1)?;
        Some(time.as_secs_f64() * 1e3)
    }
}
