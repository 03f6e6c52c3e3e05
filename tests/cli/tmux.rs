//! A terminal in which programs run, and whose screen can be read.

use headcount_tests::{directory, eventually};
use std::process::Command;
use tempfile::TempDir;

/// A terminal of a tmux server of its own.
pub(crate) struct Terminal {
    /// Where the server's socket lies, which it does not remove itself.
    directory: TempDir,
}

/// Whether there is tmux at all.
pub(crate) fn is_there() -> bool {
    Command::new("tmux")
        .arg("-V")
        .output()
        .is_ok_and(|ran| ran.status.success())
}

impl Terminal {
    /// A terminal of that size in which a line of shell runs.
    pub(crate) fn run(columns: u16, rows: u16, line: &str) -> Self {
        // The end of the line keeps the terminal open, so that its screen can be read.
        Self::run_only(columns, rows, &format!("{line}; sleep 1000"))
    }

    /// The same, and the terminal goes away when it ends.
    pub(crate) fn run_only(columns: u16, rows: u16, line: &str) -> Self {
        let terminal = Self {
            directory: directory(),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let new = [
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "sh",
            "-c",
            line,
        ];
        terminal.tmux(&[&["-f", "/dev/null"], &new[..]].concat());
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = self.server();
        tmux.arg("-u").args(arguments);
        for variable in ["TMUX", "HEADCOUNT_TABLE", "NO_COLOR"] {
            tmux.env_remove(variable);
        }
        let ran = tmux
            .env("TERM", "xterm-256color")
            .output()
            .expect("runs tmux");
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
        String::from_utf8(ran.stdout).expect("UTF-8")
    }

    fn server(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.directory.path().join("tmux"));
        tmux
    }

    /// What is on the screen, line by line.
    pub(crate) fn screen(&self) -> Vec<String> {
        let screen = self.tmux(&["capture-pane", "-p"]);
        screen
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// The same with its colours.
    pub(crate) fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn wait_for(&self, what: &str, right: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut last = Vec::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                last = self.screen();
                // A picture may be caught half drawn. It is whole if it is the same twice.
                right(&last) && self.screen() == last
            });
        }));
        assert!(seen.is_ok(), "{what}: {last:#?}");
        last
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for_text(&self, text: &str) -> Vec<String> {
        self.wait_for(text, |screen| screen.iter().any(|line| line.contains(text)))
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// What tmux knows of the terminal.
    pub(crate) fn knows(&self, what: &str) -> String {
        let format = format!("#{{{what}}}");
        self.tmux(&["display-message", "-p", &format])
            .trim_end()
            .to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.server().arg("kill-server").output();
    }
}
