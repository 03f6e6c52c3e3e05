//! Engines that have a name: when the resolver fails, and when a name has several
//! addresses. The resolver is the test's own, in a network of the test's own.

use crate::deployment::{Deployment, agent, complete};
use crate::engine::MockEngine;
use crate::network::apart;
use crate::resolver::{Resolver, Says};
use headcount::EngineState;
use headcount_tests::eventually;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const PLACE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 5);
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
const OPTIONS: [&str; 5] = [
    "--workers=1",
    "--resolve-every",
    "0.05",
    "--probe-every",
    "0.05",
];

/// Whether the only engine takes requests.
fn is_up(deployment: &Deployment) -> bool {
    deployment.table.view().engines[0].state == EngineState::Active
}

#[test]
fn a_resolver_that_fails_or_is_silent_does_an_engine_no_harm() {
    apart(
        "names::a_resolver_that_fails_or_is_silent_does_an_engine_no_harm",
        || {
            let directory = headcount_tests::directory();
            let resolver = Resolver::start(directory.path(), Says::Addresses(vec![PLACE]));
            let engine = MockEngine::start_at(&format!("{PLACE}:0"), "0.02");
            let list = format!("http://engine.test:{}", engine.address.port());
            let deployment = Deployment::start_by_file(&list, &OPTIONS);
            // Each has a connection of its own, which has to be opened.
            let mut streams = vec![deployment.stream(1_000_000)];
            for trouble in [Says::Failure, Says::NoSuchName, Says::Nothing] {
                resolver.says(trouble.clone());
                let before = resolver.asked();
                let mut slowest = Duration::ZERO;
                // Two look-ups: the first may have been answered before the trouble began.
                eventually("look-ups that fail", || {
                    let start = Instant::now();
                    streams.push(deployment.stream(1_000_000));
                    slowest = slowest.max(start.elapsed());
                    assert!(is_up(&deployment), "{trouble:?}");
                    // Each look-up is of two questions.
                    resolver.asked() >= before + 4
                });
                streams.clear();
                // A look-up that gets no answer takes a second at the least.
                println!("{trouble:?}: at the most {slowest:?} for a first token");
            }
            let health = agent().get(deployment.url("/health")).call().unwrap();
            assert_eq!(health.status(), 200);
            // The answers of a resolver that works again are used.
            resolver.says(Says::Addresses(vec![ELSEWHERE]));
            let port = engine.address.port();
            drop(engine);
            let _engine = MockEngine::start_at(&format!("{ELSEWHERE}:{port}"), "0.002");
            eventually("the engine's new address", || {
                complete(&agent(), &deployment.url("/v1/completions"), 1)
                    .unwrap()
                    .0
                    == 200
            });
            deployment.settles();
        },
    );
}

#[test]
fn an_engine_whose_address_is_unknown_leaves_its_requests_to_others() {
    apart(
        "names::an_engine_whose_address_is_unknown_leaves_its_requests_to_others",
        || {
            let directory = headcount_tests::directory();
            let resolver = Resolver::start(directory.path(), Says::Failure);
            let engine = MockEngine::start_at(&format!("{PLACE}:0"), "0.002");
            let port = engine.address.port();
            let by_name = format!("http://engine.test:{port}\n");
            let both = format!("{by_name}http://{}\n", engine.address);
            let ask =
                |deployment: &Deployment| complete(&agent(), &deployment.url("/v1/completions"), 1);
            let deployment = Deployment::start_by_file(&both, &OPTIONS);
            for _ in 0..10 {
                assert_eq!(ask(&deployment).unwrap().0, 200);
            }
            assert!(is_up(&deployment));
            deployment.settles();
            drop(deployment);

            let deployment = Deployment::start_by_file(&by_name, &OPTIONS);
            let (status, body) = ask(&deployment).unwrap();
            assert_eq!(status, 503, "{body}");
            assert!(
                body.contains("no_connection") && body.contains("engine.test"),
                "{body}"
            );
            assert!(is_up(&deployment));
            resolver.says(Says::Addresses(vec![PLACE]));
            eventually("the engine's address", || {
                ask(&deployment).unwrap().0 == 200
            });
            deployment.settles();
        },
    );
}

#[test]
fn an_engine_with_two_addresses_is_reached_at_the_one_that_answers() {
    apart(
        "names::an_engine_with_two_addresses_is_reached_at_the_one_that_answers",
        || {
            let directory = headcount_tests::directory();
            let both = Says::Addresses(vec![PLACE, ELSEWHERE]);
            let _resolver = Resolver::start(directory.path(), both);
            let engine = MockEngine::start_at(&format!("{ELSEWHERE}:0"), "0.02");
            let port = engine.address.port();
            // Its queue of connections is full, so another attempt gets no answer.
            let silent = TcpListener::bind(SocketAddr::from((PLACE, port))).unwrap();
            // SAFETY: changes the length of the queue of a socket of ours.
            assert_eq!(unsafe { libc::listen(silent.as_raw_fd(), 0) }, 0);
            let _queued = TcpStream::connect((PLACE, port)).unwrap();

            let list = format!("http://engine.test:{port}");
            let deployment = Deployment::start_by_file(&list, &OPTIONS);
            let streams: Vec<_> = (0..8).map(|_| deployment.stream(1_000_000)).collect();
            assert!(is_up(&deployment));
            drop(streams);
            deployment.settles();

            // Probes do the same.
            let address = engine.kill();
            let ask = || {
                complete(&agent(), &deployment.url("/v1/completions"), 1)
                    .unwrap()
                    .0
            };
            eventually("the engine's state down", || {
                ask() == 503 && !is_up(&deployment)
            });
            let _engine = MockEngine::again(address, "0.002");
            eventually("the engine's return", || is_up(&deployment));
            assert_eq!(ask(), 200);
            deployment.settles();
        },
    );
}
