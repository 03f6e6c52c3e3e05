//! `headcount create`.

use crate::engines::{NamedWeight, named_weight};
use crate::failure::{Failure, Outcome};
use crate::output;
use clap::Args;
use headcount::{Engine, Table};
use std::path::PathBuf;

/// Create a table, on which all memory is reserved at once.
#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Where: on a tmpfs, such as /dev/shm/llama.
    #[arg(env = "HEADCOUNT_TABLE", value_hint = clap::ValueHint::FilePath)]
    path: PathBuf,
    /// An engine, and how much it can do compared with the others (1). May be repeated; engines are
    /// numbered in this order, from 0.
    #[arg(short, long = "engine", value_name = "NAME[=WEIGHT]", value_parser = named_weight)]
    engines: Vec<NamedWeight>,
    /// How many engines there is room for, 1 to 4096 [default: 64, or as many as are given].
    #[arg(long, value_name = "N")]
    max_engines: Option<usize>,
    /// How many frontends can join, 1 to 4095 [default: 64].
    #[arg(long, value_name = "N")]
    frontends: Option<usize>,
    /// How many threads of one frontend can route at the very same time [default: 4].
    #[arg(long, value_name = "N")]
    lanes: Option<usize>,
    /// The most requests in flight on all engines together [default: no cap].
    #[arg(long, value_name = "N")]
    max_in_flight: Option<u32>,
    /// The most tokens in flight on all engines together [default: no cap].
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// Permission bits of the file, octal.
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = octal)]
    mode: u32,
}

impl Create {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let mut options = Table::options().mode(self.mode);
        for NamedWeight { name, weight } in self.engines {
            options = options.engine(Engine::named(name).weight(weight.unwrap_or(1.0)));
        }
        if let Some(count) = self.max_engines {
            options = options.max_engines(count);
        }
        if let Some(count) = self.frontends {
            options = options.max_frontends(count);
        }
        if let Some(count) = self.lanes {
            options = options.lanes(count);
        }
        if let Some(requests) = self.max_in_flight {
            options = options.max_in_flight(requests);
        }
        if let Some(tokens) = self.max_tokens {
            options = options.max_tokens(tokens);
        }
        let table = options.create(&self.path)?;
        let (facts, path) = (table.facts(), self.path.display());
        output::print(&format!(
            "created {path}: {} engines (room for {}), room for {} frontends, {} bytes\n",
            facts.engines, facts.max_engines, facts.max_frontends, facts.size
        ))?;
        Ok(Outcome::Fine)
    }
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "permission bits are octal, from 0600 to 0777".to_owned())
}
