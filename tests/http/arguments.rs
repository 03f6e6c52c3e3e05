//! What is wrong on the command line is refused at the start, and the message says what is right.

use crate::deployment::PROGRAM;
use std::process::{Command, Stdio};

/// What the program says before it ends by itself.
fn refusal(arguments: &[&str]) -> String {
    let directory = headcount_tests::directory();
    let empty = directory.path().join("engines");
    std::fs::write(&empty, "").unwrap();
    // Without this list, which is refused, what is accepted would serve for ever.
    let ended = Command::new(PROGRAM)
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
fn a_path_for_probes_is_one_that_can_be_asked_for() {
    for wrong in ["", "health", "/a b", "/a\r\nx: y", "/a#b", "*"] {
        let said = refusal(&["--probe-path", wrong]);
        assert!(
            said.contains("a path that begins with /"),
            "{wrong:?}: {said}"
        );
    }
    let right = refusal(&["--probe-path", "/v1/health?deep=1%20"]);
    assert!(right.contains("names no engine"), "{right}");
}

#[test]
fn more_engines_than_a_table_has_room_for_are_refused_in_words_of_this_program() {
    let directory = headcount_tests::directory();
    let file = directory.path().join("engines");
    let list = (1..=257).map(|port| format!("http://127.0.0.1:{port}\n"));
    std::fs::write(&file, list.collect::<String>()).unwrap();
    let program = Command::new(PROGRAM)
        .arg("--engines-file")
        .arg(&file)
        .args(["--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let said = String::from_utf8(program.stderr).unwrap();
    assert!(said.contains("room for 256; name fewer"), "{said}");
    assert!(!said.contains("max_engines"), "{said}");
}
