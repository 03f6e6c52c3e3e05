//! A panic while the terminal is taken, in a terminal of tmux.

use super::*;
use std::process::Command;
use tempfile::TempDir;

const PANICS: &str = "top::terminal::tests::panics_halfway_through_a_picture";

/// Runs in the terminal of the other test. Without a terminal it does nothing.
#[test]
#[ignore = "runs in the terminal of the other test"]
fn panics_halfway_through_a_picture() {
    if let Ok(mut screen) = Screen::take() {
        let _ = screen.draw(|_| panic!("halfway through a picture"));
    }
}

/// A tmux server of its own.
struct Tmux(TempDir);

impl Tmux {
    fn run(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.0.path().join("tmux"));
        tmux.args(["-u", "-f", "/dev/null"]);
        let ran = tmux.args(arguments).env_remove("TMUX").output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn the_terminal_is_given_back_on_a_panic() {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped: the_terminal_is_given_back_on_a_panic: tmux is not installed");
        return;
    }
    let tmux = Tmux(tempfile::tempdir().unwrap());
    let this = std::env::current_exe().unwrap();
    let line = format!(
        "before=$(stty -a); echo hello; RUST_BACKTRACE=0 '{}' --exact {PANICS} --ignored --nocapture; \
         test \"$before\" = \"$(stty -a)\" && echo settings are back; echo the end; sleep 1000",
        this.display()
    );
    tmux.run(&[
        "new-session",
        "-d",
        "-x",
        "120",
        "-y",
        "40",
        "sh",
        "-c",
        &line,
    ]);
    let (start, mut screen) = (Instant::now(), String::new());
    while !screen.contains("the end") {
        assert!(start.elapsed() < Duration::from_secs(60), "{screen}");
        thread::sleep(Duration::from_millis(20));
        screen = tmux.run(&["capture-pane", "-p"]);
    }
    for text in ["hello", "halfway through a picture", "settings are back"] {
        assert!(screen.contains(text), "no {text:?} in {screen}");
    }
    let knows = tmux.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
    assert_eq!(knows, "0 1\n", "the screen and the cursor are back");
}
