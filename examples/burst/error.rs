//! What can go wrong, as sentences for the person at the terminal.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::process::Process;
use crate::strategy::Strategy;
use crate::trace::COLUMNS;

/// Why the example stopped.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(
        "cannot read the trace {}: {source}; give a CSV file with the columns {}",
        path.display(),
        COLUMNS.join(","),
    )]
    TraceUnreadable { path: PathBuf, source: io::Error },

    #[error("{}, line {line}: found {found}, expected {expected}", path.display())]
    TraceMalformed {
        path: PathBuf,
        line: usize,
        found: String,
        expected: String,
    },

    #[error(
        "--kill needs a frontend to die and one to go on, and --frontends is {frontends}; give 2"
    )]
    NoFrontendLeft { frontends: u32 },

    #[error(
        "{strategy} keeps no count that its frontends share, so it has no cap; with --cap give shared, headcount or headcount-queue"
    )]
    NoCap { strategy: Strategy },

    #[error(
        "cannot write the chart to {}: {reason}; give a file in a directory that exists",
        path.display()
    )]
    Chart { path: PathBuf, reason: String },

    #[error("cannot write the results to standard output: {0}")]
    Output(io::Error),

    #[error(
        "cannot make a directory for the table and the sockets in {}: {source}",
        path.display()
    )]
    Scratch { path: PathBuf, source: io::Error },

    #[error("cannot start {process}: {source}")]
    Start { process: Process, source: io::Error },

    #[error("{process} failed: {reason}")]
    Failed { process: Process, reason: String },

    #[error("{process} ended before the run was over")]
    Ended { process: Process },

    #[error("nothing has happened for {seconds} s while waiting for {what}")]
    Stalled { what: String, seconds: u64 },

    #[error("cannot {what}: {source}")]
    System { what: String, source: io::Error },

    #[error("the table refused: {0}")]
    Table(#[from] headcount::Error),

    #[error(transparent)]
    Route(#[from] headcount::RouteError),

    #[error("cannot watch for Ctrl-C: {0}")]
    Signals(io::Error),

    #[error("interrupted; all processes of this run are stopped and its files are removed")]
    Interrupted,
}

impl Error {
    /// 2 for what the user can put right on the command line, 130 for Ctrl-C as in a shell, else 1.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::TraceUnreadable { .. }
            | Self::TraceMalformed { .. }
            | Self::NoFrontendLeft { .. }
            | Self::NoCap { .. }
            | Self::Chart { .. } => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}
