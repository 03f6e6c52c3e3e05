//! Running the command.

use headcount_tests::built;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
        Self {
            code: output.status.code().expect("it ends by itself"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Returns what it printed. Panics if it failed.
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// Returns its output and the sentence of its error. Panics unless it ended with this status.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        let sentence = self
            .err
            .strip_prefix("headcount: ")
            .expect("says who complains");
        assert_eq!(sentence.matches('\n').count(), 1, "{sentence}");
        assert!(sentence.contains(['?', ';']), "says what to do: {sentence}");
        self.out + sentence
    }
}

/// The command, built once for all tests.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| built("headcount-cli", "headcount"))
}

/// The command with nothing from this process's environment that could change what it does.
pub(crate) fn command() -> Command {
    let mut command = Command::new(binary());
    for variable in ["HEADCOUNT_TABLE", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

/// Runs the command with these arguments.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ran {
    Ran::of(command().args(arguments).output().expect("starts"))
}

/// Runs a command that was prepared.
pub(crate) fn run_with(mut command: Command) -> Ran {
    Ran::of(command.output().expect("starts"))
}

/// Runs a line of arguments, in which PATH is the path of a table.
pub(crate) fn on(path: &Path, line: &str) -> Ran {
    run(words(path, line))
}

/// The same, and meanwhile something else.
pub(crate) fn on_while(path: &Path, line: &str, act: impl FnOnce()) -> Ran {
    let mut command = command();
    command.args(words(path, line));
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().expect("starts");
    act();
    Ran::of(running.wait_with_output().expect("ends"))
}

/// The same, with HEADCOUNT_TABLE naming the table.
pub(crate) fn with_variable(path: &Path, line: &str) -> Ran {
    let mut command = command();
    command.env("HEADCOUNT_TABLE", path).args(words(path, line));
    Ran::of(command.output().expect("starts"))
}

/// The same as [`on`], as the user nobody.
pub(crate) fn as_nobody(path: &Path, line: &str) -> Ran {
    let mut command = command();
    command.args(words(path, line)).uid(65534).gid(65534);
    Ran::of(command.output().expect("starts"))
}

fn words(path: &Path, line: &str) -> Vec<String> {
    let path = path.to_str().expect("a path of tests is UTF-8");
    line.split(' ')
        .map(|word| word.replace("PATH", path))
        .collect()
}
