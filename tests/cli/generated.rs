//! Completions and man pages, which are generated.

use crate::command::run;
use headcount_tests::directory;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn completions_are_generated_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).fine();
        assert!(
            script.contains("undrain") && script.contains("stale-after"),
            "{shell}"
        );
    }
    let script = run(["completions", "bash"]).fine();
    let test = script
        + "\nCOMP_WORDS=(headcount dra); COMP_CWORD=1; _headcount headcount dra headcount; echo \"<${COMPREPLY[*]}>\"";
    let mut bash = Command::new("bash")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    bash.stdin
        .take()
        .unwrap()
        .write_all(test.as_bytes())
        .unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "<drain>\n");
}

#[test]
fn man_pages_are_generated() {
    let page = run(["man"]).fine();
    assert!(
        page.contains(".TH headcount 1") && page.contains("HEADCOUNT_TABLE"),
        "{page}"
    );
    let directory = directory();
    let to = directory.path().join("man1");
    run(["man", "--to", to.to_str().unwrap()]).fine();
    let show = fs::read_to_string(to.join("headcount-show.1")).unwrap();
    assert!(show.contains("stale\\-after"), "{show}");
    assert!(show.contains("sampled_in_flight"), "{show}");
    assert!(to.join("headcount.1").exists());
    // Nothing refers to what an installed command has not.
    for command in [
        "show", "verify", "bench", "list", "dump", "metrics", "create", "cap",
    ] {
        let help = run([command, "--help"]).fine();
        assert!(!help.contains("docs/"), "{help}");
        let page = fs::read_to_string(to.join(format!("headcount-{command}.1"))).unwrap();
        assert!(!page.contains("docs/"), "{page}");
    }
}
