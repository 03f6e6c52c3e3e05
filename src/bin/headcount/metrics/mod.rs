//! `headcount metrics`.

mod exposition;
mod server;

use crate::failure::{Failure, Outcome};
use crate::output::{self, printable, printable_path};
use crate::reading::{Reading, state_name};
use crate::show::seconds;
use crate::source::{Owner, Source, Watched, named_or_variable};
use clap::Args;
use exposition::{Looked, Read};
use headcount::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serve Prometheus metrics of tables over HTTP, at /metrics.
///
/// A scrape costs one look at each table. One that is not there yet is served as soon as it is, and if
/// another table comes to lie at its path, that one is served from then on. Scrapes are answered with 503
/// while none of the tables can be read. Each metric has the label `table`, the path.
#[derive(Args, Debug)]
pub(crate) struct Metrics {
    /// The tables: /dev/shm/llama, say [env: HEADCOUNT_TABLE].
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    owner: Owner,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9470")]
    listen: SocketAddr,
    /// Print the metrics once, and end.
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// A snapshot that is older than so many seconds is stale.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds,
          allow_negative_numbers = true)]
    stale_after: Duration,
}

impl Metrics {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let mut tables = Vec::new();
        for path in self.paths()? {
            let table = Served::new(Source::new(path, self.owner));
            tables.push(table.open(self.once)?);
        }
        let mut scrape = move || scrape(&mut tables, self.stale_after);
        if self.once {
            output::print(&scrape()?)?;
            return Ok(Outcome::Fine);
        }
        server::serve(self.listen, scrape)
    }

    /// Each once.
    fn paths(&self) -> Result<Vec<PathBuf>, Failure> {
        if self.paths.is_empty() {
            return Ok(vec![named_or_variable(None)?]);
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in &self.paths {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        Ok(paths)
    }
}

/// A table that is served, whether it is there or not.
struct Served {
    source: Source,
    watched: Option<Watched>,
}

impl Served {
    fn new(source: Source) -> Self {
        let watched = None;
        Self { source, watched }
    }

    /// Opens it for the first time. It need not be there yet, unless `now`.
    fn open(mut self, now: bool) -> Result<Self, Failure> {
        match Watched::open(&self.source) {
            Ok(watched) => self.watched = Some(watched),
            Err(Error::NotFound { path }) if !now => output::complain(&format!(
                "{} does not exist yet; it is served as soon as it does",
                path.display()
            )),
            Err(error) => return Err(error.into()),
        }
        Ok(self)
    }

    fn look(&mut self, stale_after: Duration) -> Result<Reading, Error> {
        let watched = match &mut self.watched {
            Some(watched) => watched,
            absent => absent.insert(Watched::open(&self.source)?),
        };
        Reading::again(watched, stale_after)
    }
}

fn scrape(tables: &mut [Served], stale_after: Duration) -> Result<String, Failure> {
    let mut looked = Vec::new();
    let mut failed = None;
    for table in tables {
        let reading = match table.look(stale_after) {
            Ok(reading) => Some(reading),
            Err(error) => {
                failed.get_or_insert(error);
                None
            }
        };
        looked.push(Looked {
            label: printable_path(table.source.path()),
            reading: reading.map(|reading| Read {
                is_linked: reading.is_linked(),
                view: reading.view,
                facts: reading.facts,
            }),
        });
    }
    match failed {
        Some(error) if looked.iter().all(|table| table.reading.is_none()) => Err(error.into()),
        _ => exposition::encode(&looked)
            .map_err(|error| Failure::failed(format!("writing metrics: {error}; report this"))),
    }
}
