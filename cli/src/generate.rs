//! `headcount completions` and `headcount man`, which are made from the definition of the arguments.

use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome};
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;

/// Print completions for a shell.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        let mut command = Arguments::command();
        clap_complete::generate(self.shell, &mut command, "headcount", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(Outcome::Fine)
    }
}

/// Print the man page, or write one for each command.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Write headcount.1, headcount-show.1 and so on into this directory.
    #[arg(long, value_name = "DIRECTORY", value_hint = clap::ValueHint::DirPath)]
    to: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let command = Arguments::command();
        let Some(directory) = self.to else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command)
                .render(&mut page)
                .map_err(unwritten("the page"))?;
            output::print(&String::from_utf8_lossy(&page))?;
            return Ok(Outcome::Fine);
        };
        let at = directory.display().to_string();
        fs::create_dir_all(&directory).map_err(unwritten(&at))?;
        clap_mangen::generate_to(command, &directory).map_err(unwritten(&at))?;
        Ok(Outcome::Fine)
    }
}

fn unwritten(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::failed(format!("writing {what}: {error}; check the directory"))
}
