//! One command of a task.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of a check that some machines cannot make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checked {
    Fine,
    /// It could not be made, for this reason.
    Not(&'static str),
}

impl From<()> for Checked {
    fn from((): ()) -> Self {
        Self::Fine
    }
}

impl Checked {
    /// Takes a check that could not be made for a failure: for a task that is nothing but this check.
    pub(crate) fn or_fail(self, what: &str) -> Result<(), Failed> {
        match self {
            Self::Fine => Ok(()),
            Self::Not(why) => Err(Failed(format!("{what}: {why}"))),
        }
    }
}

/// A command, with a name for people.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    command: Command,
}

/// The root of the sources.
pub(crate) fn root() -> PathBuf {
    // Cargo sets this. Started without cargo, the current directory has to be the root.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = own.and_then(|own| own.parent().map(PathBuf::from));
    root.unwrap_or_else(|| PathBuf::from("."))
}

/// The directory into which cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// How cargo is told to build releases as `[profile.bench]` has them.
const QUICK_RELEASE: [(&str, &str); 2] = [
    ("CARGO_PROFILE_RELEASE_LTO", "false"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

/// A call of cargo with these arguments, which are separated by spaces. It builds releases without link-time
/// optimisation, which takes minutes where many programs are built again and again.
pub(crate) fn cargo(name: &'static str, arguments: &str) -> Step {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut step = program(name, cargo, arguments.split_whitespace());
    step.command.envs(QUICK_RELEASE);
    step
}

/// A call of another program.
pub(crate) fn program<A: AsRef<OsStr>>(
    name: &'static str,
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Step {
    let mut command = Command::new(program);
    command.args(arguments);
    Step { name, command }
}

impl Step {
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Has cargo build a release as users get it.
    pub(crate) fn like_a_users_build(mut self) -> Self {
        for (name, _) in QUICK_RELEASE {
            self.command.env_remove(name);
        }
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Drops what the command prints.
    pub(crate) fn quiet(mut self) -> Self {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self
    }

    /// Runs the command and returns whether it succeeded.
    pub(crate) fn succeeds(mut self) -> Result<bool, Failed> {
        match self.command.status() {
            Ok(status) => Ok(status.success()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Runs the command and returns its exit code. `None`: a signal has ended it.
    pub(crate) fn code(mut self) -> Result<Option<i32>, Failed> {
        match self.command.status() {
            Ok(status) => Ok(status.code()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Runs the command with its output on the terminal.
    pub(crate) fn run(mut self) -> Result<(), Failed> {
        self.announce();
        match self.command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.failed(&status)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Runs the command and returns what it printed.
    pub(crate) fn output(mut self) -> Result<Vec<u8>, Failed> {
        self.announce();
        match self.command.stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => Err(self.failed(&output.status)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Prints the command, as one would write it.
    fn announce(&self) {
        let program = Path::new(self.command.get_program());
        let program = program.file_name().unwrap_or(program.as_os_str());
        let words = std::iter::once(program).chain(self.command.get_args());
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        println!("   {}", words.join(" "));
    }

    fn failed(&self, how: &dyn fmt::Display) -> Failed {
        Failed(format!("{}: {how}", self.name))
    }
}
