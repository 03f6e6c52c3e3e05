//! The counters of the deployment: sums over all workers.

use crate::deployment::{Deployment, agent, complete, signal};
use crate::engine::{MockEngine, addresses};
use headcount_tests::{eventually, prometheus_approves};
use std::collections::{BTreeSet, HashMap};

/// The samples of a scrape, by name and labels.
fn scrape(deployment: &Deployment) -> HashMap<String, f64> {
    let mut answer = agent().get(deployment.url("/metrics")).call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = samples.filter_map(|line| line.rsplit_once(' '));
    (pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap()))).collect()
}

#[test]
fn metrics_have_all_names_that_the_command_has() {
    let engines = MockEngine::several(2, "0.002");
    let options = ["--max-in-flight", "7", "--max-in-flight-total", "9"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let names = |metrics: &str| -> BTreeSet<String> {
        let lines = metrics.lines().filter_map(|l| l.strip_prefix("# TYPE "));
        lines.map(str::to_owned).collect()
    };
    let documented = include_str!("../../docs/cli.md");
    let mut answer = agent().get(deployment.url("/metrics")).call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    prometheus_approves(&text);
    let served = names(&text);
    let lines = documented
        .lines()
        .filter_map(|l| l.strip_prefix("| `headcount_"));
    let mut checked = 0;
    for line in lines {
        // A row of the documentation has name, labels and type.
        let (name, rest) = line.split_once('`').unwrap();
        let (name, _) = name.split_once('{').unwrap_or((name, ""));
        let kind = rest.split('|').nth(1).unwrap().trim();
        // Without a publisher there are no published metrics, without caps no metrics of caps, and without a queue none
        // of that.
        let is_absent = [
            "waiting",
            "waited",
            "running",
            "kv_cache",
            "snapshot_age",
            "max_in_flight_tokens",
        ];
        if !is_absent.iter().any(|absent| name.contains(absent)) {
            let family = format!("headcount_{name} {kind}");
            assert!(served.contains(&family), "no {family} among {served:?}");
            checked += 1;
        }
    }
    assert!(checked > 12, "{checked}");
}

#[test]
fn counts_are_those_of_all_workers_and_survive_each_of_them() {
    let engines = MockEngine::several(2, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight", "2"]);
    let url = deployment.url("/v1/completions");
    // Each on a connection of its own, so over all workers.
    for _ in 0..40 {
        assert_eq!(complete(&agent(), &url, 1).unwrap().0, 200);
    }
    let held: Vec<_> = (0..4).map(|_| deployment.stream(1_000_000)).collect();
    for _ in 0..10 {
        assert_eq!(complete(&agent(), &url, 1).unwrap().0, 503);
    }
    let first = scrape(&deployment);
    let of = |samples: &HashMap<String, f64>, name: &str| {
        let name = format!("headcount_http_{name}");
        samples.get(&name).copied().unwrap_or_default()
    };
    // Any worker may answer. The scrapes before this one count, too.
    for _ in 0..12 {
        let samples = scrape(&deployment);
        assert_eq!(of(&samples, "responses_total{code=\"503\"}"), 10.0);
        let saturated = "refusals_total{reason=\"engines_saturated\"}";
        assert_eq!(of(&samples, saturated), 10.0);
        assert!(of(&samples, "responses_total{code=\"200\"}") >= 40.0);
        assert!(of(&samples, "connections") >= 4.0);
        let count = of(&samples, "request_duration_seconds_count");
        let bucket = of(&samples, "request_duration_seconds_bucket{le=\"+Inf\"}");
        assert!(count >= 50.0 && count == bucket, "{count} {bucket}");
        assert!(of(&samples, "request_duration_seconds_sum") > 0.0);
        assert!(of(&samples, "sent_bytes_total") > 40.0);
    }
    for worker in deployment.workers() {
        signal(worker, libc::SIGKILL);
        eventually("another worker", || {
            let workers = deployment.workers();
            workers.len() == 4 && !workers.contains(&worker)
        });
    }
    drop(held);
    deployment.settles();
    let after = scrape(&deployment);
    let ok = "responses_total{code=\"200\"}";
    assert!(of(&after, ok) >= of(&first, ok) + 12.0, "nothing is lost");
    assert!(
        of(&after, "connections") <= 4.0,
        "those of the dead are closed"
    );
}

#[test]
fn a_line_about_a_request_has_its_id() {
    let dead = MockEngine::start("0.02").kill();
    let deployment = Deployment::start_with_log(&[dead]);
    let asked = agent().get(deployment.url("/x"));
    assert_eq!(
        asked
            .header("x-request-id", "the-id")
            .call()
            .unwrap()
            .status(),
        503
    );
    eventually("a log line with the cap", || {
        let log = deployment.log();
        log.contains("is down: ") && log.contains("(request the-id)")
    });
}
