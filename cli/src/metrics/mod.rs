//! `headcount metrics`.

mod server;

use crate::failure::{Failure, Outcome};
use crate::observed::Observed;
use crate::output::{self, printable_path};
use crate::show::seconds;
use crate::table_arg::{Owner, TableArg, Watched, named_or_variable};
use clap::Args;
use headcount::Error;
use headcount_metrics::{Contents, Sample};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serve Prometheus metrics of tables over HTTP, at /metrics.
///
/// A scrape reads each table once. A table that does not exist yet is served as soon as it does. If a table is
/// replaced by another at its path, that one is served from then on. Scrapes are answered with 503 while none
/// of the tables can be read. Each metric has the label `table`, the path.
#[derive(Args, Debug)]
pub(crate) struct Metrics {
    /// The tables, such as /dev/shm/llama [env: HEADCOUNT_TABLE].
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    owner: Owner,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9470",
          value_parser = address)]
    listen: SocketAddr,
    /// Print the metrics once, and end: with 3 if one of the tables cannot be read.
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// A snapshot that is older than so many seconds is stale.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds,
          allow_negative_numbers = true)]
    stale_after: Duration,
}

impl Metrics {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let paths = self.paths()?.into_iter();
        let mut tables: Vec<_> = paths
            .map(|path| ServedTable::new(TableArg::new(path, self.owner)))
            .collect();
        if self.once {
            output::print(&scrape(&mut tables, self.stale_after)?)?;
            // The tables that could be read are printed, and the others are reported.
            let mut failed = tables.into_iter().filter_map(ServedTable::failed);
            let Some(first) = failed.next() else {
                return Ok(Outcome::Fine);
            };
            failed.for_each(|sentence| output::complain(&sentence));
            return Err(Failure::no_table(first));
        }
        for table in &mut tables {
            table.open()?;
        }
        server::serve(self.listen, move || {
            let scraped = scrape(&mut tables, self.stale_after);
            tables.iter_mut().for_each(ServedTable::log);
            scraped
        })
    }

    /// Returns each path once.
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

/// Reads the address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = match text.split_once(':').unwrap_or(("", text)).1 {
            port if port.parse::<u16>().is_ok() => port,
            _ => "9470",
        };
        format!("write 127.0.0.1:{port} to listen for this machine only, or 0.0.0.0:{port} for all")
    })
}

/// How many tables have lain at a path one after the other, or why none can be read.
type Found = Result<usize, String>;

/// A table that is served, whether it exists or not.
struct ServedTable {
    table_arg: TableArg,
    watched: Option<Watched>,
    /// The result of the last read.
    found: Found,
    /// What was logged last.
    logged: Found,
}

impl ServedTable {
    fn new(table_arg: TableArg) -> Self {
        Self {
            table_arg,
            watched: None,
            found: Ok(1),
            logged: Ok(1),
        }
    }

    /// Opens the table for the first time. It need not exist yet.
    fn open(&mut self) -> Result<(), Failure> {
        match Watched::open(&self.table_arg) {
            Ok(watched) => self.watched = Some(watched),
            Err(error @ Error::NotFound { .. }) => {
                self.logged = Err(Failure::from(error).sentence);
                output::complain(&format!(
                    "{} does not exist yet; it is served as soon as it does",
                    self.table_arg.path().display()
                ));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn observe(&mut self, stale_after: Duration) -> Result<Observed, Error> {
        let watched = match &mut self.watched {
            Some(watched) => watched,
            absent => absent.insert(Watched::open(&self.table_arg)?),
        };
        let observed = Observed::again(watched, stale_after)?;
        self.found = Ok(watched.tables());
        Ok(observed)
    }

    /// Returns why the last read failed.
    fn failed(self) -> Option<String> {
        self.found.err()
    }

    /// Logs that the table has come, gone, or been replaced.
    fn log(&mut self) {
        let path = self.table_arg.path().display();
        match (&self.logged, &self.found) {
            (before, now) if before == now => return,
            (_, Err(why)) => output::complain(why),
            (Err(_), Ok(_)) => output::complain(&format!("{path} is there now, and is served")),
            (Ok(_), Ok(_)) => {
                output::complain(&format!("another table lies at {path} now, and is served"));
            }
        }
        self.logged = self.found.clone();
    }
}

fn scrape(tables: &mut [ServedTable], stale_after: Duration) -> Result<String, Failure> {
    let mut samples = Vec::new();
    let mut failed = None;
    for table in tables {
        let observed = match table.observe(stale_after) {
            Ok(observed) => Some(observed),
            Err(error) => {
                let failure = Failure::from(error);
                table.found = Err(failure.sentence.clone());
                failed.get_or_insert(failure);
                None
            }
        };
        samples.push(Sample {
            label: printable_path(table.table_arg.path()),
            contents: observed.map(|observed| Contents {
                is_linked: observed.is_linked(),
                view: observed.view,
                dimensions: observed.dimensions,
            }),
        });
    }
    match failed {
        Some(failure) if samples.iter().all(|table| table.contents.is_none()) => Err(failure),
        _ => headcount_metrics::encode(&samples)
            .map_err(|error| Failure::failed(format!("writing metrics: {error}; report this"))),
    }
}
