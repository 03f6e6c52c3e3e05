//! Why a process of the deployment cannot start or go on, in sentences that say what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(
        "cannot listen on {address}: {source}; free that port, or choose another with --listen"
    )]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },

    #[error("cannot read the list of engines {}: {source}; check --engines-file", path.display())]
    EnginesUnreadable { path: PathBuf, source: io::Error },

    #[error("{}, line {line}: {reason}", path.display())]
    EnginesMalformed {
        path: PathBuf,
        line: usize,
        reason: String,
    },

    #[error("cannot read the tenants {}: {source}; check --tenants", path.display())]
    TenantsUnreadable { path: PathBuf, source: io::Error },

    #[error("{}, line {line}: {reason}", path.display())]
    TenantsMalformed {
        path: PathBuf,
        line: usize,
        reason: String,
    },

    #[error(
        "the engines come from the command line, so there is no file to read again; start with --engines-file FILE to change them later"
    )]
    NoFile,

    #[error(
        "the list has {asked} engines, and the table has room for {room}; list fewer, or start on a new table"
    )]
    TooManyEngines { asked: usize, room: usize },

    #[error(
        "the table has no room for some engines until others that leave have finished; changed: {changed}; apply the list again later for the rest: {left}"
    )]
    InPart { changed: String, left: String },

    #[error(
        "the table has room for {}, and that many are running; start with a smaller --workers, wait for the last deployment to finish, or start on a new table",
        number(*room, "process", "processes")
    )]
    TooManyProcesses { room: usize },

    #[error(
        "the table has room for {}, and --workers asks for {workers}; start with --workers {room}, or on a table that was made with more (headcount create --max-frontends)",
        number(*room, "process", "processes")
    )]
    TooManyWorkers { workers: u16, room: usize },

    #[error("{place} names no engine; give at least one, as http://HOST:PORT")]
    NoEngines { place: String },

    #[error("{place} names {name} twice; name each engine once")]
    Twice { place: String, name: String },

    #[error(
        "{place} caps the tokens of an engine, and tokens are not counted; give --policy tokens, or --max-tokens for all engines"
    )]
    TokensNotCounted { place: String },

    #[error("the table refused: {0}")]
    Table(headcount::Error),

    #[error("cannot {what}: {source}")]
    System { what: String, source: io::Error },
}

/// Writes a number of things.
fn number(count: usize, one: &str, several: &str) -> String {
    match count {
        1 => format!("one {one}"),
        count => format!("{count} {several}"),
    }
}

impl From<headcount::Error> for Error {
    fn from(error: headcount::Error) -> Self {
        match error {
            headcount::Error::FrontendsFull {
                max_frontends: room,
                ..
            } => Self::TooManyProcesses { room },
            error => Self::Table(error),
        }
    }
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System {
            what: what.into(),
            source,
        }
    }
}
