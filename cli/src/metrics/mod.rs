//! `headcount metrics`.

mod server;

use crate::failure::{Failure, Outcome};
use crate::output::{self, printable_path};
use crate::reading::Reading;
use crate::show::seconds;
use crate::table_arg::{Owner, Source, Watched, named_or_variable};
use clap::Args;
use headcount::Error;
use headcount_metrics::{Contents, Sample};
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
            .map(|path| Served::new(Source::new(path, self.owner)))
            .collect();
        if self.once {
            output::print(&scrape(&mut tables, self.stale_after)?)?;
            // What could be read is printed, and the rest is not passed over in silence.
            let mut failed = tables.into_iter().filter_map(Served::failed);
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
            tables.iter_mut().for_each(Served::log);
            scraped
        })
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

/// Reads where to listen.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = match text.split_once(':').unwrap_or(("", text)).1 {
            port if port.parse::<u16>().is_ok() => port,
            _ => "9470",
        };
        format!(
            "write 127.0.0.1:{port} to be asked from this machine only, or 0.0.0.0:{port} from all"
        )
    })
}

/// How many tables have lain at a path one after the other, or why there is none to be read.
type Seen = Result<usize, String>;

/// A table that is served, whether it is there or not.
struct Served {
    source: Source,
    watched: Option<Watched>,
    /// What the last look has found.
    seen: Seen,
    /// What has been logged of it.
    logged: Seen,
}

impl Served {
    fn new(source: Source) -> Self {
        Self {
            source,
            watched: None,
            seen: Ok(1),
            logged: Ok(1),
        }
    }

    /// Opens it for the first time. It need not be there yet.
    fn open(&mut self) -> Result<(), Failure> {
        match Watched::open(&self.source) {
            Ok(watched) => self.watched = Some(watched),
            Err(error @ Error::NotFound { .. }) => {
                self.logged = Err(Failure::from(error).sentence);
                output::complain(&format!(
                    "{} does not exist yet; it is served as soon as it does",
                    self.source.path().display()
                ));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn look(&mut self, stale_after: Duration) -> Result<Reading, Error> {
        let watched = match &mut self.watched {
            Some(watched) => watched,
            absent => absent.insert(Watched::open(&self.source)?),
        };
        let reading = Reading::again(watched, stale_after)?;
        self.seen = Ok(watched.tables());
        Ok(reading)
    }

    /// Why it could not be read at the last look.
    fn failed(self) -> Option<String> {
        self.seen.err()
    }

    /// Logs that it has come, gone, or been replaced.
    fn log(&mut self) {
        let path = self.source.path().display();
        match (&self.logged, &self.seen) {
            (before, now) if before == now => return,
            (_, Err(why)) => output::complain(why),
            (Err(_), Ok(_)) => output::complain(&format!("{path} is there now, and is served")),
            (Ok(_), Ok(_)) => {
                output::complain(&format!("another table lies at {path} now, and is served"));
            }
        }
        self.logged = self.seen.clone();
    }
}

fn scrape(tables: &mut [Served], stale_after: Duration) -> Result<String, Failure> {
    let mut looked = Vec::new();
    let mut failed = None;
    for table in tables {
        let reading = match table.look(stale_after) {
            Ok(reading) => Some(reading),
            Err(error) => {
                let failure = Failure::from(error);
                table.seen = Err(failure.sentence.clone());
                failed.get_or_insert(failure);
                None
            }
        };
        looked.push(Sample {
            label: printable_path(table.source.path()),
            contents: reading.map(|reading| Contents {
                is_linked: reading.is_linked(),
                view: reading.view,
                dimensions: reading.dimensions,
            }),
        });
    }
    match failed {
        Some(failure) if looked.iter().all(|table| table.contents.is_none()) => Err(failure),
        _ => headcount_metrics::encode(&looked)
            .map_err(|error| Failure::failed(format!("writing metrics: {error}; report this"))),
    }
}
