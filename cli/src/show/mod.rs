//! `headcount show`.

mod json;
mod text;

use crate::failure::{Failure, Outcome};
use crate::observed::Observed;
use crate::output;
use crate::table_arg::{PathArgs, Watched};
use clap::Args;
use ratatui::crossterm::terminal;
use std::io::{IsTerminal, stdout};
use std::thread;
use std::time::Duration;

use json::to_json;

/// Show engines, frontends, the publisher and warnings.
#[derive(Args, Debug)]
#[command(after_long_help = json::DESCRIPTION)]
pub(crate) struct Show {
    #[command(flatten)]
    path: PathArgs,
    /// Print one JSON object; --help says what is in it. With --watch, one a line.
    #[arg(
        long,
        long_help = "Print one JSON object, described below. With --watch, one a line"
    )]
    json: bool,
    /// Show the table again and again, with a pause of so many seconds [default: 1].
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          require_equals = true, allow_negative_numbers = true, value_parser = seconds)]
    watch: Option<Duration>,
    /// A snapshot that is older than so many seconds is stale.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds,
          allow_negative_numbers = true)]
    stale_after: Duration,
}

impl Show {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table_arg = self.path.table_arg()?;
        let Some(pause) = self.watch else {
            let observed = Observed::of(&table_arg.open_read_only()?, self.stale_after);
            output::print(&self.render(&observed)?)?;
            return Ok(Outcome::Fine);
        };
        let mut watched = Watched::open(&table_arg)?;
        let on_terminal = stdout().is_terminal() && !self.json;
        loop {
            let observed = Observed::again(&mut watched, self.stale_after)?;
            let shown = self.render(&observed)?;
            if on_terminal {
                output::clear_screen();
            }
            if !output::print_on(&shown)? {
                return Ok(Outcome::Fine);
            }
            thread::sleep(pause);
        }
    }

    fn render(&self, observed: &Observed) -> Result<String, Failure> {
        if self.json {
            return to_json(observed, self.watch.is_none());
        }
        Ok(text::render(observed, width()))
    }
}

/// Returns how wide lines may be: by COLUMNS, or by the terminal. In a pipe without COLUMNS nothing is cut, so that
/// the text can be searched.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    columns
        .filter(|columns| *columns > 0)
        .unwrap_or_else(|| match terminal::size() {
            Ok((columns, _)) if stdout().is_terminal() && columns > 0 => columns.into(),
            _ => usize::MAX,
        })
}

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| (SHORTEST..=LONGEST).contains(duration))
        .ok_or_else(|| "give a number of seconds, from 0.01 to 86400".to_owned())
}
