//! Which table: its path, and how it is opened.

use crate::failure::Failure;
use crate::output::printable;
use clap::Args;
use headcount::{Error, FrontendView, Options, Table};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The variable that may name the table.
const VARIABLE: &str = "HEADCOUNT_TABLE";

/// The table that a command is about, as it is typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Which {
    /// The table: /dev/shm/llama, say [env: HEADCOUNT_TABLE].
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    path: Option<PathBuf>,
    #[command(flatten)]
    owner: Owner,
}

impl Which {
    /// The table that was typed, or that the environment names.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        let path = named_or_variable(self.path.clone())?;
        Ok(Source::new(path, self.owner))
    }
}

/// A path that was typed, or else the one that the environment names.
pub(crate) fn named_or_variable(typed: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let path = typed.or_else(|| variable().map(PathBuf::from));
    path.ok_or_else(|| no_table("`headcount list` shows the tables of this machine"))
}

fn no_table(more: &str) -> Failure {
    Failure::usage(format!("no table: give PATH, or set {VARIABLE}; {more}"))
}

/// What the environment names. Set to nothing is not set.
fn variable() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty())
}

/// A table, and whose it may be.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: PathBuf,
    owner: Owner,
}

/// Whose tables may be opened.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Owner {
    /// Open the table even if it belongs to another user, whom you trust not to cut it short.
    #[arg(long)]
    any_owner: bool,
}

impl Source {
    pub(crate) fn new(path: PathBuf, owner: Owner) -> Self {
        Self { path, owner }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the table to look at it. Reaps nothing, changes nothing.
    pub(crate) fn look(&self) -> Result<Table, Error> {
        self.options().open_read_only(&self.path)
    }

    /// Opens the table to change it, which also reaps.
    pub(crate) fn open(&self) -> Result<Table, Error> {
        self.options().open(&self.path)
    }

    /// What can be read of a table that is too damaged to be opened.
    pub(crate) fn dump_unopenable(&self) -> Result<String, Error> {
        self.options().dump_unopenable(&self.path)
    }

    fn options(&self) -> Options {
        Options::default().any_owner(self.owner.any_owner)
    }

    /// Takes the path off arguments that begin with it, unless the environment names the table.
    ///
    /// If it does, an argument is taken for a path only if it has a slash and names something that is
    /// no directory; engines may have slashes in their names, too.
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
                    "{word} is not UTF-8, as all engine names are; check the name"
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

/// Whether a word, where a path is expected, is one: what has no slash and names no file is an engine.
fn may_be_path(word: &OsString) -> bool {
    has_slash(word) || fs::symlink_metadata(word).is_ok()
}

fn has_slash(word: &OsString) -> bool {
    word.as_encoded_bytes().contains(&b'/')
}

/// A table that is looked at for long, during which another may come to lie at its path.
#[derive(Debug)]
pub(crate) struct Watched {
    source: Source,
    table: Table,
    /// Tables that lay at the path before, in which frontends still live.
    before: Vec<Table>,
    /// How many have lain there one after the other.
    tables: usize,
}

impl Watched {
    pub(crate) fn open(source: &Source) -> Result<Self, Error> {
        Ok(Self {
            table: source.look()?,
            source: source.clone(),
            before: Vec::new(),
            tables: 1,
        })
    }

    /// The table that lies at the path now. One system call if it is the same as before.
    pub(crate) fn table(&mut self) -> Result<&Table, Error> {
        if !is_at(&self.table, &self.source.path) {
            let table = self.source.look()?;
            self.before.push(std::mem::replace(&mut self.table, table));
            self.tables += 1;
        }
        Ok(&self.table)
    }

    /// The frontends that live in tables that lay at the path before. Costs nothing if there were none.
    pub(crate) fn frontends_elsewhere(&mut self) -> Vec<FrontendView> {
        let mut all = Vec::new();
        self.before.retain(|table| {
            let frontends = table.view().frontends;
            let count = all.len();
            all.extend(frontends.into_iter().filter(|frontend| frontend.alive));
            all.len() > count
        });
        all
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// How many tables have lain at the path one after the other.
    pub(crate) fn tables(&self) -> usize {
        self.tables
    }
}

/// Whether what could not be opened is a table, of which only the inside is wrong.
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

/// Whether a table is what lies at a path.
pub(crate) fn is_at(table: &Table, path: &Path) -> bool {
    let open = || -> std::io::Result<Metadata> {
        File::from(table.as_fd().try_clone_to_owned()?).metadata()
    };
    match (open(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
