//! A request counts alike in the server and in the Python router, whose tests have a line for each rule.

use crate::odd_json::{counted, deployment};

#[test]
fn a_request_counts_as_it_does_in_the_router() {
    let deployment = deployment();
    let rules = include_str!("../../python/tests/costs.txt");
    let rules = rules
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut checked = 0;
    let mut wrong = Vec::new();
    for rule in rules {
        let mut parts = rule.splitn(3, ' ');
        let mut part = || parts.next().unwrap();
        let [requests, of_each]: [u32; 2] = [part(), part()].map(|number| number.parse().unwrap());
        let body = part();
        let expected = (requests, requests * of_each);
        let seen = counted(&deployment, "application/json", body.as_bytes());
        if seen != expected {
            wrong.push(format!("{body}: {seen:?} and not {expected:?}"));
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 30, "{checked}");
}
