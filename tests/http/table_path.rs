//! The table's file is removed or replaced while a deployment runs.

use crate::deployment::{Deployment, agent, signal};
use crate::engine::{MockEngine, addresses};
use headcount::Table;
use headcount_tests::{eventually, prometheus_approves};
use std::fs;

/// Returns what `/health` and `/metrics` say of the table's file.
fn said(deployment: &Deployment) -> (String, String) {
    let get = |path| {
        let mut answer = agent().get(deployment.url(path)).call().unwrap();
        assert_eq!(answer.status(), 200);
        answer.body_mut().read_to_string().unwrap()
    };
    let health: serde_json::Value = serde_json::from_str(&get("/health")).unwrap();
    let metrics = get("/metrics");
    prometheus_approves(&metrics);
    let linked = metrics
        .lines()
        .find_map(|line| line.strip_prefix("headcount_table_linked{"))
        .and_then(|line| line.split_once("} ")?.1.split(' ').next());
    (
        health["table"].as_str().unwrap().to_owned(),
        linked.unwrap().to_owned(),
    )
}

#[test]
fn a_deployment_whose_table_is_removed_stays_in_it_and_says_so() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start_with_log(&addresses(&engines));
    let path = deployment.table_path();
    let here = |state: &str, linked: &str| (state.to_owned(), linked.to_owned());
    let _streams: Vec<_> = (0..6).map(|_| deployment.stream(1_000_000)).collect();
    assert_eq!(said(&deployment), here("here", "1"));

    fs::remove_file(&path).unwrap();
    assert_eq!(said(&deployment), here("gone", "0"));
    let count = |what: &str| deployment.log().matches(what).count();
    eventually("a log line", || count("was removed or renamed") == 1);
    // Two more checks, by the default of --probe-every.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert_eq!(count("was removed or renamed"), 1, "once");

    // A worker that starts now joins the same table.
    let victim = deployment.busiest();
    signal(victim, libc::SIGKILL);
    eventually("another worker", || {
        let workers = deployment.workers();
        workers.len() == 4 && !workers.contains(&victim)
    });
    assert!(!path.exists(), "no second table is made");
    let more: Vec<_> = (0..8).map(|_| deployment.stream(1_000_000)).collect();
    let counted = deployment.in_flight();
    assert!(counted[0].abs_diff(counted[1]) <= 1, "{counted:?}");
    let frontends = deployment.table.view().frontends;
    let held: u64 = frontends.iter().map(|frontend| frontend.in_flight).sum();
    assert_eq!(u64::from(deployment.total()), held);
    drop(more);

    let other = Table::options().engines(1).create(&path).unwrap();
    assert_eq!(said(&deployment), here("replaced", "0"));
    eventually("another line", || {
        count("was replaced by another file") == 1
    });
    assert_eq!(other.view().frontends, []);
    assert_eq!(count("was removed or renamed"), 1, "once");
}
