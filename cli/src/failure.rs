//! How a command ends that could not do its work: a sentence that says what to do, and a status.

use headcount::Error;
use std::path::Path;

/// How a command ends that did its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Fine,
    /// What was checked is not as it should be.
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
    /// It was asked for rightly, and could not be done.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self {
            code: FAILED,
            sentence: sentence.into(),
        }
    }

    /// It was asked for wrongly.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            sentence: sentence.into(),
        }
    }

    pub(crate) fn no_table(sentence: impl Into<String>) -> Self {
        Self {
            code: NO_TABLE,
            sentence: sentence.into(),
        }
    }
}

impl Failure {
    /// The table at this path has a deployment, which alone may change it.
    pub(crate) fn deployed(path: &Path, pid: u32) -> Self {
        Self::failed(format!(
            "{} is served by process {pid}, which says what its engines and caps are; change them there, or stop it first",
            path.display()
        ))
    }

    /// An engine has this name already.
    pub(crate) fn name_taken(name: &str, engine: usize) -> Self {
        Self::failed(format!(
            "the name {name:?} belongs to engine {engine} already; give each engine a name of its own"
        ))
    }
}

/// The library's own sentences, but for those that tell a programmer what to call.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Exists { path, .. } => Self::failed(format!(
                "{} exists; choose another path, or `headcount rm` the table when nobody uses it",
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
                "the weight {found} cannot be: a weight is a finite number above 0; use `headcount down` for an engine that is to get nothing"
            )),
            Error::NoSuchEngine {
                engine,
                removed: false,
                ..
            } => Self::usage(format!(
                "there is no engine @{engine} in this table; `headcount show` lists those that there are"
            )),
            Error::NoSuchEngine {
                engine,
                removed: true,
                ..
            } => Self::failed(format!(
                "the engine that was @{engine} has been removed meanwhile, and nothing was done to another that may be @{engine} now; `headcount show` lists those that there are"
            )),
            Error::NameTaken { name, engine, .. } => Self::name_taken(name, *engine),
            Error::Busy { .. } | Error::NoSpace { .. } => Self::failed(error.to_string()),
            Error::Option { .. } | Error::EngineName { .. } => Self::usage(error.to_string()),
            _ => Self::no_table(error.to_string()),
        }
    }
}
