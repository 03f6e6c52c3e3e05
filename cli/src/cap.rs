//! `headcount cap`.

use crate::caps::{Cap, MOST_REQUESTS, MOST_TOKENS, TotalCaps, described};
use crate::failure::{Failure, Outcome};
use crate::find::find;
use crate::output::{print, printable};
use crate::table_arg::{Owner, TableArg};
use clap::Args;
use std::ffi::OsString;

/// Change the caps of an engine, or those of the whole table. A cap that is not named stays.
///
/// If more is in flight than the new cap, no request is aborted: new ones are refused until there is room.
#[derive(Args, Debug)]
#[command(
    name = "cap",
    override_usage = "headcount cap [PATH] ENGINE [N|none] [--max-tokens N|none]
       headcount cap [PATH] ENGINE [--max-in-flight N|none] [--max-tokens N|none]
       headcount cap [PATH] [--max-in-flight-total N|none] [--max-tokens-total N|none]"
)]
pub(crate) struct SetCap {
    /// The table (unless HEADCOUNT_TABLE names it), the engine, and the most requests in flight on it.
    #[arg(value_name = "PATH|ENGINE|N", allow_negative_numbers = true)]
    arguments: Vec<OsString>,
    /// The same as N after the engine.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_in_flight: Option<Cap<MOST_REQUESTS>>,
    /// The most tokens in flight on it.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_tokens: Option<Cap<MOST_TOKENS>>,
    #[command(flatten)]
    totals: TotalCaps,
    #[command(flatten)]
    owner: Owner,
}

impl SetCap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (table_arg, words) = TableArg::split(&self.arguments, self.owner)?;
        if self.totals.are_given() {
            return self.of_the_table(&table_arg, &words);
        }
        let (name, requests) = match words.as_slice() {
            [name] if self.max_in_flight.is_some() || self.max_tokens.is_some() => {
                (name, self.max_in_flight)
            }
            [_, _] if self.max_in_flight.is_some() => {
                return Err(Failure::usage(
                    "two caps on requests; give it after the engine or by --max-in-flight",
                ));
            }
            [name, requests] => (name, Some(requests.parse().map_err(Failure::usage)?)),
            _ => {
                return Err(Failure::usage(
                    "which cap? give one engine and its cap, a number or none, or --max-in-flight-total for all together",
                ));
            }
        };
        let table = table_arg.open()?;
        let engine = find(&table, name)?;
        // One call for each cap: another process may be changing the other cap.
        match (requests, self.max_tokens) {
            (Some(requests), Some(tokens)) => table.set_caps(engine.id, requests.0, tokens.0)?,
            (Some(requests), None) => table.set_max_in_flight(engine.id, requests.0)?,
            (None, Some(tokens)) => table.set_max_tokens(engine.id, tokens.0)?,
            (None, None) => {}
        }
        let view = table.view();
        let caps = match view.engine(engine.id) {
            Some(engine) => described(engine.max_in_flight, engine.max_tokens),
            // Another process has removed it since.
            None => "gone".to_owned(),
        };
        print(&format!("{}: {caps}\n", printable(&engine.name)))?;
        Ok(Outcome::Fine)
    }

    fn of_the_table(self, table_arg: &TableArg, words: &[String]) -> Result<Outcome, Failure> {
        if !words.is_empty() || self.max_in_flight.is_some() || self.max_tokens.is_some() {
            return Err(Failure::usage(
                "these are caps of an engine and caps of the table; give each a command of its own",
            ));
        }
        let table = table_arg.open()?;
        if let Some(requests) = self.totals.requests_if_given() {
            table.set_total_max_in_flight(requests)?;
        }
        if let Some(tokens) = self.totals.tokens_if_given() {
            table.set_total_max_tokens(tokens)?;
        }
        let view = table.view();
        let caps = described(view.max_in_flight, view.max_tokens);
        print(&format!("all engines together: {caps}\n"))?;
        Ok(Outcome::Fine)
    }
}
