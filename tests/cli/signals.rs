//! `top` restores the terminal on signals, and ends when the terminal is closed.

use crate::command::binary;
use crate::scene::Scene;
use crate::tmux::{Terminal, is_there};
use headcount_tests::{eventually, is_running, skipped, state};
use std::fs;

/// The pid of what a shell has written into a file before it became `top`.
fn pid_in(file: &std::path::Path) -> i32 {
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[test]
fn the_terminal_is_given_back_on_signals() {
    if !is_there() {
        return skipped(
            "the_terminal_is_given_back_on_signals",
            "tmux is not installed",
        );
    }
    let scene = Scene::new();
    let directory = scene.path().parent().unwrap();
    let signals = [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
        0,
    ];
    let terminals: Vec<_> = signals
        .iter()
        .map(|signal| {
            let file = directory.join(format!("pid-{signal}"));
            // Its exit status, and whether the terminal's settings are what they were.
            let line = format!(
                "before=$(stty -a); echo hello; sh -c 'echo $$ > {file}; exec {binary} top {path}'; \
                 echo ended $?; test \"$before\" = \"$(stty -a)\" && echo settings are back",
                file = file.display(),
                binary = binary().display(),
                path = scene.path().display()
            );
            (*signal, file, Terminal::run(80, 24, &line))
        })
        .collect();
    for (signal, file, terminal) in &terminals {
        terminal.wait_for_text("gpu-2");
        assert_eq!(terminal.knows("alternate_on"), "1");
        if *signal == 0 {
            terminal.press("C-c");
        } else {
            // SAFETY: the process is the one that this test has started, and it runs.
            assert_eq!(unsafe { libc::kill(pid_in(file), *signal) }, 0);
        }
        let screen = terminal.wait_for_text("settings are back");
        let status = if *signal == 0 { 0 } else { 128 + signal };
        assert_eq!(screen[0], "hello", "signal {signal}: {screen:#?}");
        // The shell may say what the signal is called.
        let ended = format!("ended {status}");
        let said = screen[1].ends_with(&ended) || screen[2] == ended;
        assert!(said, "signal {signal}: {screen:#?}");
        assert_eq!(terminal.knows("alternate_on"), "0");
        assert_eq!(terminal.knows("cursor_flag"), "1", "the cursor is back");
    }
}

#[test]
fn top_ends_when_its_terminal_goes_away() {
    if !is_there() {
        return skipped(
            "top_ends_when_its_terminal_goes_away",
            "tmux is not installed",
        );
    }
    let scene = Scene::new();
    for how in ["", "setsid --ctty --wait ", "trap '' HUP; "] {
        let file = scene.path().parent().unwrap().join("pid");
        let line = format!(
            "{how}sh -c 'echo $$ > {}; exec {} top {}'",
            file.display(),
            binary().display(),
            scene.path().display()
        );
        let terminal = Terminal::run_only(80, 24, &line);
        terminal.wait_for_text("gpu-2");
        let pid = pid_in(&file);
        drop(terminal);
        eventually("it ends", || !is_running(pid));
    }
}

#[test]
fn top_stops_and_goes_on() {
    if !is_there() {
        return skipped("top_stops_and_goes_on", "tmux is not installed");
    }
    let scene = Scene::new();
    let file = scene.path().parent().unwrap().join("pid");
    let line = format!(
        "sh -c 'echo $$ > {}; exec {} top {}'",
        file.display(),
        binary().display(),
        scene.path().display()
    );
    let terminal = Terminal::run(80, 24, &line);
    terminal.wait_for_text("gpu-2");
    // SAFETY: the process is the one that this test has started, and it runs.
    let signal = |signal| assert_eq!(unsafe { libc::kill(pid_in(&file), signal) }, 0);
    for stop in [true, false] {
        if stop {
            signal(libc::SIGTSTP)
        } else {
            terminal.press("C-z")
        }
        eventually("the terminal is given back", || {
            terminal.knows("alternate_on") == "0"
        });
        // It has to have stopped before it is resumed.
        eventually("it has stopped", || state(pid_in(&file)) == Some('T'));
        signal(libc::SIGCONT);
        eventually("the terminal is taken again", || {
            terminal.knows("alternate_on") == "1"
        });
        terminal.wait_for_text("gpu-2");
    }
}
