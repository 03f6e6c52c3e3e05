//! The table that a command is about: its path, and how it is opened.

use crate::failure::Failure;
use crate::output::{printable, printable_path};
use clap::Args;
use headcount::{Error, FrontendView, Options, PathState, Table};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The environment variable that may name the table.
const VARIABLE: &str = "HEADCOUNT_TABLE";

/// The arguments that name a table.
#[derive(Args, Clone, Debug)]
pub(crate) struct PathArgs {
    /// The table, such as /dev/shm/llama [env: HEADCOUNT_TABLE].
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    path: Option<PathBuf>,
    #[command(flatten)]
    owner: Owner,
}

impl PathArgs {
    /// Returns the table that is given, or else the one that the environment names.
    pub(crate) fn table_arg(&self) -> Result<TableArg, Failure> {
        let path = named_or_variable(self.path.clone())?;
        Ok(TableArg::new(path, self.owner))
    }

    /// Returns the table as [`table_arg`](Self::table_arg) does, for a command whose engines follow `flag`.
    ///
    /// If the environment names the table, a path that does not exist is refused: it may be an engine without its
    /// flag.
    pub(crate) fn table_arg_or_engine(&self, flag: &str) -> Result<TableArg, Failure> {
        if let (Some(path), Some(_)) = (&self.path, variable())
            && fs::symlink_metadata(path).is_err()
        {
            let path = printable_path(path);
            return Err(Failure::usage(format!(
                "there is no table {path}; write {flag} before each engine ({flag} {path}), or leave the table to {VARIABLE}"
            )));
        }
        self.table_arg()
    }
}

/// Returns the path of a table that is to be created: the one that is given, or else the one that the environment
/// names.
///
/// If the environment names the table, a path that does not begin with `/`, `./` or `../` is refused: it may be an
/// engine without its `flag`.
pub(crate) fn path_to_create(given: Option<PathBuf>, flag: &str) -> Result<PathBuf, Failure> {
    if let (Some(path), Some(_)) = (&given, variable())
        && let Some(Component::Normal(_)) = path.components().next()
    {
        let path = printable_path(path);
        return Err(Failure::usage(format!(
            "{path} may be an engine; write {flag} before each engine ({flag} {path}), or begin the path of a table with ./"
        )));
    }
    named_or_variable(given)
}

/// Returns the path that is given, or else the one that the environment names.
pub(crate) fn named_or_variable(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let path = given.or_else(|| variable().map(PathBuf::from));
    path.ok_or_else(|| no_table("`headcount list` shows the tables of this machine"))
}

fn no_table(more: &str) -> Failure {
    Failure::usage(format!("no table: give PATH, or set {VARIABLE}; {more}"))
}

/// Returns the table that the environment names. An empty variable counts as unset.
fn variable() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty())
}

/// The table that a command is about, not opened yet.
#[derive(Clone, Debug)]
pub(crate) struct TableArg {
    path: PathBuf,
    owner: Owner,
}

/// Whether a table of another user may be opened.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Owner {
    /// Open the table even if it belongs to another user, whom you trust not to cut it short.
    #[arg(long)]
    any_owner: bool,
}

impl TableArg {
    pub(crate) fn new(path: PathBuf, owner: Owner) -> Self {
        Self { path, owner }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the table for reading. Reaps nothing and changes nothing.
    pub(crate) fn open_read_only(&self) -> Result<Table, Error> {
        self.options().open_read_only(&self.path)
    }

    /// Opens the table to change it, which also reaps.
    pub(crate) fn open(&self) -> Result<Table, Error> {
        self.options().open(&self.path)
    }

    /// Dumps what can be read of a table that is too damaged to be opened.
    pub(crate) fn dump_unopenable(&self) -> Result<String, Error> {
        self.options().dump_unopenable(&self.path)
    }

    fn options(&self) -> Options {
        Options::default().any_owner(self.owner.any_owner)
    }

    /// Splits arguments into the table, which comes first, and the rest.
    ///
    /// If the environment names the table, the first argument is the table only if it has a slash and names a file
    /// that is no directory: names of engines may have slashes, too.
    pub(crate) fn split(
        arguments: &[OsString],
        owner: Owner,
    ) -> Result<(Self, Vec<String>), Failure> {
        let (path, rest) = match (variable(), arguments) {
            (Some(named), [first, ..]) if !is_path(first) => (named, arguments),
            (Some(named), []) => (named, arguments),
            (None, [first, ..]) if !may_be_path(first) => {
                let first = printable(&first.to_string_lossy());
                return Err(no_table(&format!("{first:?} is no file here")));
            }
            (_, [first, rest @ ..]) => (first.clone(), rest),
            (None, []) => return Err(no_table("it comes before the engines")),
        };
        let rest = rest.iter().map(|word| {
            word.clone().into_string().map_err(|word| {
                let word = word.display();
                Failure::usage(format!(
                    "{word} is not UTF-8, as the names of engines are; check the name"
                ))
            })
        });
        let path = path.into();
        Ok((Self { path, owner }, rest.collect::<Result<_, _>>()?))
    }
}

fn is_path(word: &OsString) -> bool {
    has_slash(word) && fs::symlink_metadata(word).is_ok_and(|found| !found.is_dir())
}

/// Whether a word in the place of a path is one. A word without a slash that names no file is an engine.
fn may_be_path(word: &OsString) -> bool {
    has_slash(word) || fs::symlink_metadata(word).is_ok()
}

fn has_slash(word: &OsString) -> bool {
    word.as_encoded_bytes().contains(&b'/')
}

/// A table that is read again and again. Another may come to lie at its path meanwhile.
#[derive(Debug)]
pub(crate) struct Watched {
    table_arg: TableArg,
    table: Table,
    /// Former tables at the path in which frontends still live.
    former: Vec<Table>,
    /// How many tables have lain there one after the other.
    tables: usize,
}

impl Watched {
    pub(crate) fn open(table_arg: &TableArg) -> Result<Self, Error> {
        Ok(Self {
            table: table_arg.open_read_only()?,
            table_arg: table_arg.clone(),
            former: Vec::new(),
            tables: 1,
        })
    }

    /// Returns the table that lies at the path now. Makes one system call if it is the same as before.
    pub(crate) fn table(&mut self) -> Result<&Table, Error> {
        if self.table.path_state()? != PathState::Here {
            let table = self.table_arg.open_read_only()?;
            self.former.push(std::mem::replace(&mut self.table, table));
            self.tables += 1;
        }
        Ok(&self.table)
    }

    /// Returns the frontends that live in former tables at the path. Costs nothing if there were none.
    pub(crate) fn frontends_elsewhere(&mut self) -> Vec<FrontendView> {
        let mut all = Vec::new();
        self.former.retain(|table| {
            let frontends = table.view().frontends;
            let count = all.len();
            all.extend(frontends.into_iter().filter(|frontend| frontend.alive));
            all.len() > count
        });
        all
    }

    pub(crate) fn table_arg(&self) -> &TableArg {
        &self.table_arg
    }

    /// Returns how many tables have lain at the path one after the other.
    pub(crate) fn tables(&self) -> usize {
        self.tables
    }
}

/// Whether a file that could not be opened is a table with wrong contents.
pub(crate) fn is_damaged(error: &Error) -> bool {
    matches!(
        error,
        Error::Version { .. }
            | Error::Checksum { .. }
            | Error::Geometry { .. }
            | Error::Size { .. }
            | Error::Mode { .. }
    )
}
