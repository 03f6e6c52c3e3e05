//! `headcount create`.

use crate::caps::{self, TotalCaps};
use crate::engine_form::EngineList;
use crate::failure::{Failure, Outcome};
use crate::format::count;
use crate::output::{self, printable, printable_path};
use crate::queue::{self, QueueArgs};
use crate::table_arg::path_to_create;
use clap::Args;
use headcount::{EngineView, Table};
use std::path::PathBuf;

/// Create a table, and reserve all of its memory.
#[derive(Args, Debug)]
pub(crate) struct Create {
    /// The table: a file on a tmpfs, such as /dev/shm/llama [env: HEADCOUNT_TABLE].
    #[arg(value_hint = clap::ValueHint::FilePath)]
    path: Option<PathBuf>,
    #[command(flatten)]
    engines: EngineList,
    #[command(flatten)]
    totals: TotalCaps,
    #[command(flatten)]
    queue: QueueArgs,
    /// How many engines there is room for, 1 to 4096 [default: 64, or as many as are given].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_engines: Option<usize>,
    /// How many frontends can join, 1 to 4095 [default: 64].
    #[arg(
        long,
        alias = "frontends",
        value_name = "N",
        allow_negative_numbers = true
    )]
    max_frontends: Option<usize>,
    /// How many threads of one frontend have a lane of their own, so that they never wait for each other
    /// [default: 3].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Permission bits of the file, octal.
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = octal)]
    mode: u32,
}

impl Create {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let path = path_to_create(self.path, "--engine")?;
        let engines = self.engines.read()?;
        if engines.is_empty() && self.max_engines.is_none() {
            let advice = ", or --max-engines if they are added later";
            return Err(self.engines.none(advice));
        }
        let mut options = self.totals.set_in(Table::options().mode(self.mode));
        options = self.queue.set_in(options).map_err(Failure::usage)?;
        for engine in engines {
            options = options.engine(engine);
        }
        if let Some(count) = self.max_engines {
            options = options.max_engines(count);
        }
        if let Some(count) = self.max_frontends {
            options = options.max_frontends(count);
        }
        if let Some(count) = self.threads {
            options = options.threads(count);
        }
        output::print(&created(&options.create(&path)?))?;
        Ok(Outcome::Fine)
    }
}

/// Describes the table that was created, so that a typing error shows.
fn created(table: &Table) -> String {
    let (dimensions, view) = (table.dimensions(), table.view());
    let mut said = format!(
        "created {}: {} (room for {}), room for {}, {} bytes\n",
        printable_path(table.path()),
        count(dimensions.engines as u64, "engine"),
        dimensions.max_engines,
        count(dimensions.max_frontends as u64, "frontend"),
        dimensions.size
    );
    for engine in &view.engines {
        let (id, name) = (engine.id, printable(&engine.name));
        said += &format!("  {id} {name}: {}\n", described(engine));
    }
    if view.engines.is_empty() {
        said += "! no engine takes requests; `headcount add` gives it some\n";
    } else {
        let caps = caps::described(view.max_in_flight, view.max_tokens);
        said += &format!("  all engines together: {caps}\n");
    }
    if let Some(queue) = &view.queue {
        said += &format!("  queue: {}\n", queue::bounds(queue));
    }
    said
}

/// Describes the weight and the caps of an engine.
pub(crate) fn described(engine: &EngineView) -> String {
    format!(
        "weight {}, {}",
        engine.weight,
        caps::described(engine.max_in_flight, engine.max_tokens)
    )
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777 && mode & 0o600 == 0o600)
        .ok_or_else(|| {
            "permission bits are octal, and let the owner read and write: 0600, 0660 or 0666, for example"
                .to_owned()
        })
}
