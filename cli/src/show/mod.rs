//! `headcount show`.

mod json;
mod text;

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::reading::Reading;
use crate::table_arg::{Watched, Which};
use clap::Args;
use ratatui::crossterm::terminal;
use std::io::{IsTerminal, stdout};
use std::thread;
use std::time::Duration;

use json::to_json;

/// Show engines, frontends, the publisher and what is wrong.
#[derive(Args, Debug)]
#[command(after_long_help = json::DESCRIPTION)]
pub(crate) struct Show {
    #[command(flatten)]
    which: Which,
    /// Print one JSON object; --help says what is in it. With --watch, one a line.
    #[arg(
        long,
        long_help = "Print one JSON object, described below. With --watch, one a line"
    )]
    json: bool,
    /// Show it again and again, every so many seconds [default: 1].
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
        let source = self.which.source()?;
        let Some(pause) = self.watch else {
            let reading = Reading::of(&source.look()?, self.stale_after);
            output::print(&self.render(&reading)?)?;
            return Ok(Outcome::Fine);
        };
        let mut watched = Watched::open(&source)?;
        let on_terminal = stdout().is_terminal() && !self.json;
        loop {
            let reading = Reading::again(&mut watched, self.stale_after)?;
            let shown = self.render(&reading)?;
            if on_terminal {
                output::clear_screen();
            }
            if !output::print_on(&shown)? {
                return Ok(Outcome::Fine);
            }
            thread::sleep(pause);
        }
    }

    fn render(&self, reading: &Reading) -> Result<String, Failure> {
        if self.json {
            return to_json(reading, self.watch.is_none());
        }
        Ok(text::render(reading, width()))
    }
}

/// How wide lines may be: as COLUMNS says, or the terminal. Where neither does, nothing is cut: it may be
/// searched through.
fn width() -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|said| said.parse().ok());
    said.filter(|columns| *columns > 0)
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
        .ok_or_else(|| "it is a number of seconds, from 0.01 to 86400".to_owned())
}
