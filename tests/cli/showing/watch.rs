//! `show --watch`.

use crate::command::command;
use crate::scene::Scene;
use headcount_tests::eventually;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn show_watches_until_there_is_no_table() {
    let scene = Scene::new();
    let mut watch = command();
    watch
        .args(["show", "--json", "--watch=0.02"])
        .arg(scene.path());
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = watch.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().expect("a first line").unwrap();
    std::fs::remove_file(scene.path()).unwrap();
    assert!(lines.all(|line| line.unwrap().starts_with('{')));
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("does not exist"), "{said}");
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn show_watches_until_its_output_is_closed() {
    let mut scene = Scene::new();
    let mut child = command()
        .args(["show", "--json", "--watch=0.02"])
        .env("HEADCOUNT_TABLE", scene.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut in_flight = || {
        let line = lines.next().expect("another line").unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["in_flight"].as_u64()
    };
    assert_eq!([in_flight(), in_flight()], [Some(9), Some(9)]);
    scene.frontends[0].finish_all();
    eventually("the change is shown", || in_flight() == Some(3));
    drop(lines);
    assert!(
        child.wait().unwrap().success(),
        "it ends when its pipe does"
    );
    let mut complaint = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut complaint)
        .unwrap();
    assert_eq!(complaint, "");
}
