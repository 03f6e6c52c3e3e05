//! How the command ends: exit codes, one sentence on standard error, and pipes that close early.

use crate::command::{as_nobody, binary, on, run, with_variable};
use crate::scene::Scene;
use headcount::Table;
use headcount_tests::{directory, is_root, skipped};
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

#[test]
fn wrong_usage_is_2() {
    let scene = Scene::new();
    for line in [
        "",
        "shwo PATH",
        "show",
        "show PATH more",
        "show PATH --bold",
        "create PATH --engine a=0",
    ] {
        let ran = on(scene.path(), line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
    }
    let path = scene.path();
    on(path, "drain PATH").refused(2);
    let said = on(path, "drain PATH gpu-0 gpu-9").refused(2);
    assert!(said.contains("\"gpu-9\""), "{said}");
    assert_eq!(
        scene.table.view().engines[0].state,
        headcount::EngineState::Active
    );
    on(path, "drain PATH @3").refused(2);
    on(path, "weight PATH gpu-0 heavy").refused(2);
    on(path, "weight PATH gpu-0").refused(2);
    on(path, "cap PATH gpu-0 many").refused(2);
    on(path, "cap PATH gpu-0").refused(2);
    on(path, "add PATH x=-3").refused(2);
    // The second is the option's former name.
    for option in ["--max-frontends", "--frontends"] {
        let said = on(path, &format!("create PATH-2 -e a {option} 5000")).refused(2);
        assert!(said.contains("max_frontends is 5000"), "{said}");
    }
    on(path, "top PATH").refused(2);
}

#[test]
fn no_table_is_3() {
    let directory = directory();
    let path = directory.path().join("table");
    let reading = [
        "show PATH",
        "verify PATH",
        "dump PATH",
        "metrics PATH --once",
        "reap PATH",
        "rm PATH",
        "drain PATH x",
    ];
    for line in reading {
        let said = on(&path, line).refused(3);
        assert!(said.contains("does not exist"), "{said}");
    }
    fs::write(
        &path,
        "something else, that is at least as long as a header".repeat(20),
    )
    .unwrap();
    for line in reading {
        on(&path, line).refused(3);
    }
    on(&path, "rm PATH --force").refused(3);
    assert!(path.exists(), "what is no table is not removed");
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    on(&link, "show PATH").refused(3);
}

#[test]
fn a_path_that_is_no_file_is_no_table() {
    let directory = directory();
    let at = |name| directory.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    fs::write(at("empty"), "").unwrap();
    for name in ["directory", "pipe", "socket", "empty", "pipe/below"] {
        for line in [
            "show PATH",
            "show PATH --watch",
            "verify PATH",
            "dump PATH",
            "metrics PATH",
            "reap PATH",
            "rm PATH --force",
            "drain PATH x",
        ] {
            on(&at(name), line).refused(3);
        }
    }
}

#[test]
fn errors_have_nothing_in_them_that_a_terminal_acts_on() {
    let said = on(Path::new("/nowhere/\x1b[2J\u{202e}"), "show PATH").refused(3);
    assert!(!said.contains(['\x1b', '\u{202e}']), "{said:?}");
}

#[test]
fn times_that_no_clock_reaches_are_wrong_usage() {
    let scene = Scene::new();
    for line in [
        "top PATH --interval 1e18",
        "show PATH --watch=1e18",
        "show PATH --stale-after inf",
        "metrics PATH --once --stale-after nan",
        "top PATH --interval 0",
    ] {
        let ran = on(scene.path(), line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.err.contains("from 0.01 to 86400"), "{line}: {ran:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_1() {
    let scene = Scene::new();
    for line in [
        "show PATH",
        "dump PATH",
        "verify PATH",
        "man",
        "metrics PATH --once",
    ] {
        let mut ran = crate::command::command();
        let arguments = line.split(' ').map(|word| match word {
            "PATH" => scene.path().as_os_str(),
            word => word.as_ref(),
        });
        ran.args(arguments);
        ran.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
        let ran = ran.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("No space left"), "{line}: {said}");
    }
}

#[test]
fn no_permission_is_3() {
    if !is_root() {
        return skipped("no_permission_is_3", "needs another user");
    }
    let scene = Scene::new();
    let said = as_nobody(scene.path(), "show PATH").refused(3);
    assert!(
        said.contains("--any-owner") || said.contains("ermission"),
        "{said}"
    );
    // A table of another user is refused unless asked for.
    chown(scene.path(), Some(65534), None).unwrap();
    let said = on(scene.path(), "show PATH").refused(3);
    assert!(said.contains("--any-owner"), "{said}");
    on(scene.path(), "show PATH --any-owner").fine();
    on(scene.path(), "drain PATH gpu-0").refused(3);
    on(scene.path(), "drain PATH gpu-0 --any-owner").fine();
}

#[test]
fn status_1_is_for_what_cannot_be_done() {
    let scene = Scene::new();
    let said = on(scene.path(), "create PATH -e a").refused(1);
    assert!(said.contains("exists"), "{said}");
    on(scene.path(), "add PATH gpu-0").refused(1);
    on(scene.path(), "metrics PATH --listen 203.0.113.7:9470").refused(1);
}

#[test]
fn a_pipe_that_closes_early_is_no_error() {
    let scene = Scene::new();
    for arguments in [
        "show",
        "show --json",
        "dump",
        "man",
        "completions bash",
        "metrics --once",
        "show --watch=0.02",
    ] {
        let line = format!("'{}' {arguments} | head -1", binary().display());
        let ran = Command::new("bash")
            .args(["-o", "pipefail", "-c", &line])
            .env("HEADCOUNT_TABLE", scene.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{arguments}");
        assert!(
            ran.status.success() && !ran.stdout.is_empty(),
            "{arguments}: {ran:?}"
        );
    }
}

#[test]
fn the_path_may_come_from_the_environment() {
    let scene = Scene::new();
    let path = scene.path();
    let other = directory();
    let elsewhere = other.path().join("other");
    Table::options().engines(1).create(&elsewhere).unwrap();
    assert!(with_variable(path, "show").fine().contains("gpu-0"));
    with_variable(path, "drain gpu-0").fine();
    with_variable(path, "undrain PATH gpu-0").fine();
    with_variable(path, "cap gpu-0 7").fine();
    // What is typed goes before what is in the environment.
    let shown = with_variable(path, &format!("show {}", elsewhere.display())).fine();
    assert!(!shown.contains("gpu-0"), "{shown}");
    let line = format!("down {} 0", elsewhere.display());
    with_variable(path, &line).fine();
    assert_eq!(
        Table::open(&elsewhere).unwrap().view().engines[0].state,
        headcount::EngineState::Down
    );
    let states = scene
        .table
        .view()
        .engines
        .into_iter()
        .map(|engine| engine.state);
    assert!(
        states
            .into_iter()
            .all(|state| state == headcount::EngineState::Active)
    );
}

#[test]
fn help_describes_each_command() {
    let help = run(["--help"]).fine();
    assert!(
        help.contains("HEADCOUNT_TABLE") && help.contains("Exit status"),
        "{help}"
    );
    for command in [
        "create",
        "rm",
        "show",
        "top",
        "metrics",
        "drain",
        "undrain",
        "down",
        "up",
        "add",
        "apply",
        "list",
        "remove",
        "cap",
        "weight",
        "reap",
        "verify",
        "dump",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        let own = run([command, "--help"]).fine();
        assert!(own.contains("Usage: headcount"), "{own}");
    }
}
