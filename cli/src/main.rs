//! The `headcount` command: shows, watches and changes a table from a shell.
//!
//! It maps the file that the frontends map, and asks no server. Commands that only read open the table for reading,
//! and never disturb it.

mod apply;
mod arguments;
mod bench;
mod cap;
mod caps;
mod create;
mod dump;
mod engine_form;
mod engines;
mod failure;
mod find;
mod format;
mod generate;
mod list;
mod metrics;
mod observed;
mod output;
mod queue;
mod reap;
mod remove;
mod show;
mod table_arg;
mod text_table;
mod top;
mod verify;
mod warning;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::{Failure, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::complain_of_arguments(&error),
    };
    let outcome = match arguments.command {
        Command::Create(create) => create.run(),
        Command::Rm(rm) => rm.run(),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Top(top) => top.run(),
        Command::Metrics(metrics) => metrics.run(),
        Command::Drain(drain) => drain.run(engines::Change::Drain),
        Command::Undrain(undrain) => undrain.run(engines::Change::Up),
        Command::Down(down) => down.run(engines::Change::Down),
        Command::Up(up) => up.run(engines::Change::Up),
        Command::Remove(remove) => remove.run(engines::Change::Remove),
        Command::Add(add) => add.run(),
        Command::Apply(apply) => apply.run(),
        Command::Cap(cap) => cap.run(),
        Command::Weight(weight) => weight.run(),
        Command::Reap(reap) => reap.run(),
        Command::Verify(verify) => verify.run(),
        Command::Dump(dump) => dump.run(),
        Command::Bench(bench) => bench.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::CheckFailed) => ExitCode::from(1),
        Err(Failure { code, sentence }) => {
            output::complain(&sentence);
            ExitCode::from(code)
        }
    }
}
