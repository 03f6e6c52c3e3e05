//! Mistakes on the command line are refused at the start, and the message says what is right.

use crate::deployment::program;
use std::process::{Command, Stdio};

/// Returns the message with which the program ends by itself.
fn refusal(arguments: &[&str]) -> String {
    let directory = headcount_tests::directory();
    let empty = directory.path().join("engines");
    std::fs::write(&empty, "").unwrap();
    // This list is refused. Without it, the program would serve for ever if it accepted the arguments.
    let ended = Command::new(program())
        .arg("--engines-file")
        .arg(&empty)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!ended.status.success(), "{arguments:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn an_address_to_listen_at_is_refused_with_the_right_form() {
    for (wrong, port) in [
        (":18500", 18500),
        ("18500", 18500),
        ("localhost:9000", 9000),
        ("127.0.0.1", 8000),
        ("::1", 8000),
    ] {
        for option in ["--listen", "--mock-engine"] {
            let said = refusal(&[option, wrong]);
            let right = [format!("127.0.0.1:{port} "), format!("0.0.0.0:{port} ")];
            assert!(right.iter().all(|r| said.contains(r)), "{wrong}: {said}");
        }
    }
}

#[test]
fn engines_that_are_given_in_another_form_are_refused_with_the_right_one() {
    let several = "give each engine by an --engine of its own";
    for (wrong, right) in [
        ("http://a:1,http://b:2", several),
        ("http://a:1, http://b:2", several),
        ("http://a:1 http://b:2", several),
        (
            "http://127.0.0.1:9001=2",
            "write \"http://127.0.0.1:9001 weight=2\"",
        ),
    ] {
        // This probe path is refused. Without it, the program would serve for ever if it accepted the engine.
        let said = Command::new(program())
            .args(["--engine", wrong, "--probe-path", "x"])
            .output()
            .unwrap();
        let said = String::from_utf8(said.stderr).unwrap();
        assert!(said.contains(right), "{wrong}: {said}");
    }
}

#[test]
fn a_path_for_probes_is_one_that_can_be_asked_for() {
    for wrong in [
        "",
        "health",
        "/a b",
        "/a\r\nx: y",
        "/a#b",
        "*",
        "/\u{e4}",
        "/%",
        "/a%2",
        "/%zz",
        "/a%\u{e4}",
        "/a?b=%",
        "/<a>",
        "/a?b=\"c\"",
        "/{a}",
    ] {
        let said = refusal(&["--probe-path", wrong]);
        assert!(
            said.contains("a path that begins with /"),
            "{wrong:?}: {said}"
        );
    }
    for right in ["/v1/health?deep=1%20", "/%C3%a4;a=(b)/%25/~c?d?", "/"] {
        let said = refusal(&["--probe-path", right]);
        assert!(said.contains("names no engine"), "{right}: {said}");
    }
}

/// Returns the message of the program for a list with this line.
fn refusal_of_engine(line: &str) -> String {
    let directory = headcount_tests::directory();
    let file = directory.path().join("engines");
    // The last line is refused, so the program ends even if it accepts the first one.
    std::fs::write(&file, format!("{line}\nhttps://h\n")).unwrap();
    let ended = Command::new(program())
        .arg("--engines-file")
        .arg(&file)
        .args(["--policy", "tokens"])
        .output()
        .unwrap();
    assert!(!ended.status.success(), "{line}");
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn a_setting_of_an_engine_is_given_once() {
    for (settings, key) in [
        ("max_in_flight=2 max_in_flight=3", "max_in_flight"),
        ("max_in_flight=2 weight=2 max_in_flight=2", "max_in_flight"),
        ("weight=1 weight=1", "weight"),
        ("max_tokens=5 max_tokens=6", "max_tokens"),
    ] {
        let said = refusal_of_engine(&format!("http://h {settings}"));
        let right = format!("line 1: {key} is given twice; give it once");
        assert!(said.contains(&right), "{settings}: {said}");
    }
}

#[test]
fn caps_and_weights_out_of_range_are_refused_with_the_range() {
    let (requests, tokens) = (
        ("max_in_flight", 1_048_574_u64),
        ("max_tokens", 4_294_967_294),
    );
    for (key, most) in [requests, tokens] {
        let above = (most + 1).to_string();
        let flag = format!("--{}", key.replace('_', "-"));
        for wrong in ["0", "-1", "1.5", "", "4294967295", "4294967296", &above] {
            let said = refusal_of_engine(&format!("http://h {key}={wrong}"));
            let right =
                format!("line 1: \"{key}={wrong}\" is not a cap; give a number from 1 to {most}\n");
            assert!(said.contains(&right), "{said}");
            let said = refusal(&[&format!("{flag}={wrong}")]);
            assert!(said.contains(&flag), "{said}");
            if wrong.starts_with(|c: char| c.is_ascii_digit()) && !wrong.contains('.') {
                assert!(said.contains(&format!("1..={most}")), "{said}");
            }
        }
        let said = refusal_of_engine(&format!("http://h {key}={most}"));
        assert!(said.contains("line 2: "), "{said}");
        let said = refusal(&[&format!("{flag}={most}")]);
        assert!(said.contains("names no engine"), "{said}");
    }
    for wrong in ["0", "-1", "1e-40", "1e39", "NaN", "inf", "", "two"] {
        let said = refusal_of_engine(&format!("http://h weight={wrong}"));
        let range = "is not a weight; give a number from 1.2e-38 to 3.4e38\n";
        assert!(said.contains(range), "{wrong}: {said}");
    }
    for right in ["0.001", "1e-37", "3.4e38"] {
        let said = refusal_of_engine(&format!("http://h weight={right}"));
        assert!(said.contains("line 2: "), "{right}: {said}");
    }
}

#[test]
fn more_engines_than_a_table_has_room_for_are_refused_in_words_of_this_program() {
    let directory = headcount_tests::directory();
    let file = directory.path().join("engines");
    let list = (1..=257).map(|port| format!("http://127.0.0.1:{port}\n"));
    std::fs::write(&file, list.collect::<String>()).unwrap();
    let program = Command::new(program())
        .arg("--engines-file")
        .arg(&file)
        .args(["--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let said = String::from_utf8(program.stderr).unwrap();
    assert!(said.contains("room for 256; list fewer"), "{said}");
    assert!(!said.contains("max_engines"), "{said}");
}

#[test]
fn nothing_that_a_terminal_acts_on_is_repeated() {
    for wrong in [
        ["--listen", "\x1b[2Jx"],
        ["--engine", "http://\u{9b}2J"],
        ["--workers", "\x1b]0;x\x07"],
    ] {
        let said = refusal(&wrong);
        let acts = |c: char| c.is_control() && c != '\n';
        assert!(!said.is_empty() && !said.contains(acts), "{said:?}");
    }
}
