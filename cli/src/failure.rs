//! The failure of a command: a sentence that says what to do, and an exit status.

use headcount::Error;
use std::path::Path;

/// The end of a command that did its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Fine,
    /// The check found something wrong.
    CheckFailed,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) sentence: String,
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NO_TABLE: u8 = 3;

impl Failure {
    /// The arguments are right, and the command could not be carried out.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self {
            code: FAILED,
            sentence: sentence.into(),
        }
    }

    /// The arguments are wrong.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            sentence: sentence.into(),
        }
    }

    /// There is no such table, or no permission.
    pub(crate) fn no_table(sentence: impl Into<String>) -> Self {
        Self {
            code: NO_TABLE,
            sentence: sentence.into(),
        }
    }
}

impl Failure {
    /// The table has a deployment, which decides on its engines and caps.
    pub(crate) fn deployed(path: &Path, pid: u32) -> Self {
        Self::failed(format!(
            "{} is served by process {pid}, which decides on its engines and caps; change them there, or stop it first",
            path.display()
        ))
    }

    /// Another engine has this name.
    pub(crate) fn name_taken(name: &str, engine: usize) -> Self {
        Self::failed(format!(
            "engine {engine} already has the name {name:?}; give each engine a name of its own"
        ))
    }
}

/// Mostly the sentences of the library. Those that tell a programmer what to call are replaced.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Exists { path, .. } => Self::failed(format!(
                "{} exists; choose another path, or `headcount rm` the table when no process uses it",
                path.display()
            )),
            Error::Owner {
                path,
                found,
                expected,
                ..
            } => Self::no_table(format!(
                "{} belongs to user {found}, and this is user {expected}; run as that user, or add --any-owner if you trust them",
                path.display()
            )),
            Error::Deployed { path, pid, .. } => Self::deployed(path, *pid),
            Error::EnginesFull { max_engines, .. } => Self::failed(format!(
                "all {max_engines} engine slots are taken; remove an engine and let it finish, or create a table with a larger --max-engines"
            )),
            Error::Weight { found, .. } => Self::usage(format!(
                "the weight {found} is not valid: a weight is a finite number above 0; use `headcount down` for an engine that shall get no requests"
            )),
            Error::NoSuchEngine {
                engine,
                removed: false,
                ..
            } => Self::usage(format!(
                "there is no engine @{engine} in this table; `headcount show` lists its engines"
            )),
            Error::NoSuchEngine {
                engine,
                removed: true,
                ..
            } => Self::failed(format!(
                "engine @{engine} was removed meanwhile, and no other engine was changed; `headcount show` lists the engines"
            )),
            Error::NameTaken { name, engine, .. } => Self::name_taken(name, *engine),
            Error::Busy { .. } | Error::NoSpace { .. } => Self::failed(error.to_string()),
            Error::Option { .. } | Error::EngineName { .. } => Self::usage(error.to_string()),
            _ => Self::no_table(error.to_string()),
        }
    }
}
