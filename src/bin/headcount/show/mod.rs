//! `headcount show`.

mod json;
mod text;

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::reading::Reading;
use crate::source::{Source, Watched};
use clap::Args;
use ratatui::crossterm::terminal;
use std::io::{IsTerminal, stdout};
use std::thread;
use std::time::Duration;

use json::to_json;

/// Show engines, frontends, the publisher and what is wrong.
#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    source: Source,
    /// Print one JSON object; docs/cli.md says what is in it. With --watch, one a line.
    #[arg(long)]
    json: bool,
    /// Show it again and again, every so many seconds [default: 1].
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          require_equals = true, value_parser = seconds)]
    watch: Option<Duration>,
    /// A snapshot that is older than so many seconds is stale.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    stale_after: Duration,
}

impl Show {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let Some(pause) = self.watch else {
            let reading = Reading::of(&self.source.look()?, self.stale_after);
            output::print(&self.render(&reading)?)?;
            return Ok(Outcome::Fine);
        };
        let mut watched = Watched::open(&self.source)?;
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
        let width = match terminal::size() {
            Ok((columns, _)) if stdout().is_terminal() => usize::from(columns).max(80),
            _ => 80,
        };
        Ok(text::render(reading, width))
    }
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
