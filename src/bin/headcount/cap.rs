//! `headcount cap`.

use crate::caps::{Cap, said};
use crate::failure::{Failure, Outcome};
use crate::find::find;
use crate::output::{print, printable};
use crate::source::{Owner, Source};
use clap::Args;
use std::ffi::OsString;

/// Change an engine's caps. What is not named stays.
///
/// A cap below what is in flight takes nothing away: the engine takes no more until it is under it.
#[derive(Args, Debug)]
#[command(
    name = "cap",
    override_usage = "headcount cap [PATH] ENGINE [N|none] [--max-tokens N|none]"
)]
pub(crate) struct SetCap {
    /// The table (unless HEADCOUNT_TABLE names it), the engine, and the most requests in flight on it.
    #[arg(value_name = "PATH|ENGINE|N", allow_negative_numbers = true)]
    arguments: Vec<OsString>,
    /// The most tokens in flight on it.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_tokens: Option<Cap>,
    #[command(flatten)]
    owner: Owner,
}

impl SetCap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (source, words) = Source::split(&self.arguments, self.owner)?;
        let (name, requests) = match words.as_slice() {
            [name] if self.max_tokens.is_some() => (name, None),
            [name, requests] => (name, Some(requests.parse::<Cap>().map_err(Failure::usage)?)),
            _ => {
                return Err(Failure::usage(
                    "which cap? give one engine and its cap, a number or none",
                ));
            }
        };
        let table = source.open()?;
        let engine = find(&table, name)?;
        let caps = || {
            let view = table.snapshot();
            view.engine(engine.id)
                .map(|e| (e.max_in_flight, e.max_tokens))
        };
        let (old_requests, old_tokens) = caps().unwrap_or_default();
        let requests = requests.map_or(old_requests, |cap| cap.0);
        let tokens = self.max_tokens.map_or(old_tokens, |cap| cap.0);
        table.set_caps(engine.id, requests, tokens)?;
        // A cap beyond what can be counted is none.
        let (requests, tokens) = caps().unwrap_or((requests, tokens));
        let name = printable(&engine.name);
        print(&format!("{name}: {}\n", said(requests, tokens)))?;
        Ok(Outcome::Fine)
    }
}
