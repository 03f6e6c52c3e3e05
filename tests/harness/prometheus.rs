use crate::skipped;
use std::io::Write;
use std::process::{Command, Stdio};

/// Fails if Prometheus' own tool has anything to say about this text. Skips that without the tool.
pub fn prometheus_approves(metrics: &str) {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        return skipped("promtool check metrics", "promtool is not installed");
    };
    let mut input = promtool.stdin.take().expect("is piped");
    input.write_all(metrics.as_bytes()).expect("reads it all");
    drop(input);
    let said = promtool.wait_with_output().expect("ends");
    let complaints = String::from_utf8_lossy(&said.stderr) + String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && complaints.is_empty(),
        "{complaints}"
    );
}
