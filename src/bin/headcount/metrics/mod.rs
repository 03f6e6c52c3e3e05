//! `headcount metrics`.

mod exposition;
mod server;

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::reading::Reading;
use crate::show::seconds;
use crate::source::{Source, Watched};
use clap::Args;
use std::net::SocketAddr;
use std::time::Duration;

/// Serve Prometheus metrics of a table over HTTP, at /metrics.
///
/// A scrape costs one look at the table. If another table comes to lie at the path, that one is
/// served from then on.
#[derive(Args, Debug)]
pub(crate) struct Metrics {
    #[command(flatten)]
    source: Source,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9470")]
    listen: SocketAddr,
    /// Print the metrics once, and end.
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// A snapshot that is older than so many seconds is stale.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    stale_after: Duration,
}

impl Metrics {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let mut watched = Watched::open(&self.source)?;
        let mut scrape = move || -> Result<String, Failure> {
            let reading = Reading::again(&mut watched, self.stale_after)?;
            exposition::encode(&reading)
        };
        if self.once {
            output::print(&scrape()?)?;
            return Ok(Outcome::Fine);
        }
        server::serve(self.listen, scrape)
    }
}
