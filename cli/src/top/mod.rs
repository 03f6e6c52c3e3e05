//! `headcount top`.

mod app;
mod draw;
mod engine_lines;
mod history;
mod popup;
mod terminal;

use crate::failure::{Failure, Outcome};
use crate::observed::Observed;
use crate::show::seconds;
use crate::table_arg::{PathArgs, Watched};
use app::{Action, App};
use clap::Args;
use headcount::Error;
use ratatui::crossterm::event;
use std::time::{Duration, Instant};
use terminal::{Screen, lost};

/// Watch a table live: engines, rates, spread and frontends, on a full screen.
///
/// Keys: arrows choose an engine, s sorts, d drains and u undrains the chosen engine, p pauses, ? helps,
/// q quits.
#[derive(Args, Debug)]
pub(crate) struct Top {
    #[command(flatten)]
    path: PathArgs,
    /// How often to read the table.
    #[arg(long, value_name = "SECONDS", default_value = "0.25", value_parser = seconds,
          allow_negative_numbers = true)]
    interval: Duration,
    /// A snapshot that is older than so many seconds is stale.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds,
          allow_negative_numbers = true)]
    stale_after: Duration,
}

/// Returns why the table cannot be read. A table that was read before and is gone was removed.
fn why_lost(error: Error) -> String {
    match error {
        Error::NotFound { path, .. } => format!("{} was removed", path.display()),
        error => Failure::from(error).sentence,
    }
}

/// A request to stop is obeyed within this time.
const ATTENTION: Duration = Duration::from_millis(50);

impl Top {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let mut watched = Watched::open(&self.path.table_arg()?)?;
        let first = Observed::again(&mut watched, self.stale_after)?;
        let mut app = App::new(first);
        let mut screen = Screen::take()?;
        let mut next = Instant::now();
        let mut outdated = true;
        loop {
            screen.obey()?;
            if Instant::now() >= next {
                match Observed::again(&mut watched, self.stale_after) {
                    Ok(observed) => app.note(Instant::now(), observed),
                    Err(error) => app.lose(Instant::now(), &why_lost(error)),
                }
                next = Instant::now() + self.interval;
                outdated = true;
            }
            if outdated {
                screen.draw(|frame| draw::draw(frame, &mut app))?;
                outdated = false;
            }
            let left = next.saturating_duration_since(Instant::now());
            let ready = event::poll(left.min(ATTENTION));
            if !ready.map_err(|error| lost("listening to", &error))? {
                continue;
            }
            let event = event::read().map_err(|error| lost("listening to", &error))?;
            outdated = true;
            match app.act(&event) {
                Action::Nothing => {}
                Action::Quit => return Ok(Outcome::Fine),
                Action::Stop => screen.stop()?,
                Action::Change { engine, change } => {
                    let result = change.apply(watched.table_arg(), &engine);
                    app.say(result);
                    next = Instant::now();
                }
            }
        }
    }
}
