//! The arguments.

use crate::apply::Apply;
use crate::bench::Bench;
use crate::cap::SetCap;
use crate::create::Create;
use crate::dump::Dump;
use crate::engines::{Add, EngineArgs, Weight};
use crate::generate::{Completions, Man};
use crate::list::List;
use crate::metrics::Metrics;
use crate::reap::Reap;
use crate::remove::Rm;
use crate::show::Show;
use crate::top::Top;
use crate::verify::Verify;
use clap::{Parser, Subcommand};

/// Show, watch and change a headcount table: the shared file in which API servers count the requests
/// that they have in flight on their engines.
///
/// PATH may be left out if HEADCOUNT_TABLE names the table.
///
/// Exit status: 0 success; 1 a check failed, or the change could not be made; 2 wrong usage; 3 no such
/// table, or no permission.
#[derive(Parser, Debug)]
#[command(name = "headcount", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Create(Create),
    Rm(Rm),
    List(List),
    Show(Show),
    Top(Top),
    Metrics(Metrics),
    /// Let engines take no new requests; those in flight finish.
    #[command(override_usage = "headcount drain [PATH] ENGINE...")]
    Drain(EngineArgs),
    /// Let engines take requests again that were drained. The same as `up`.
    #[command(override_usage = "headcount undrain [PATH] ENGINE...")]
    Undrain(EngineArgs),
    /// Mark engines as not answering: they take no requests.
    #[command(override_usage = "headcount down [PATH] ENGINE...")]
    Down(EngineArgs),
    /// Let engines take requests again that were down. The same as `undrain`: it ends a drain as well.
    #[command(override_usage = "headcount up [PATH] ENGINE...")]
    Up(EngineArgs),
    Add(Add),
    Apply(Apply),
    /// Remove engines from the table; the requests in flight on them finish.
    #[command(override_usage = "headcount remove [PATH] ENGINE...")]
    Remove(EngineArgs),
    Cap(SetCap),
    Weight(Weight),
    Reap(Reap),
    Verify(Verify),
    Dump(Dump),
    Bench(Bench),
    Completions(Completions),
    Man(Man),
}
