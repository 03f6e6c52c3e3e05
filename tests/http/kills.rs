//! SIGKILL of workers, of engines and of the parent.

use crate::deployment::{Deployment, StopClients, agent, complete, signal, stop};
use crate::engine::{MockEngine, addresses};
use crate::stream::Stream;
use headcount::{EngineState, Table};
use headcount_tests::{Rounds, eventually, is_running};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Streams that go on until they are dropped, over all workers.
fn begin_streams(deployment: &Deployment, count: usize) -> Vec<Stream> {
    (0..count).map(|_| deployment.stream(1_000_000)).collect()
}

/// Sends requests until a worker has found that the engine is down.
fn find_down(deployment: &Deployment, dead: SocketAddr) {
    eventually("the engine's state down", || {
        let answer = complete(&agent(), &deployment.url("/v1/completions"), 1);
        assert_eq!(answer.unwrap().0, 200, "another one answers");
        deployment.state(dead) == Some(EngineState::Down)
    });
}

#[test]
fn a_worker_that_is_killed_takes_only_its_own_streams_along() {
    workers_are_killed(1);
}

#[test]
fn two_workers_that_are_killed_at_once_take_only_their_own_streams_along() {
    workers_are_killed(2);
}

fn workers_are_killed(count: usize) {
    let engines = MockEngine::several(3, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let start = Instant::now();
    let mut asked: Vec<_> = (0..24)
        .map(|_| Stream::ask(deployment.address, 1_000_000))
        .collect();
    eventually("24 in flight", || deployment.in_flight() == [8; 3]);
    let mut holders = deployment.table.view().frontends;
    holders.sort_by_key(|frontend| std::cmp::Reverse(frontend.in_flight));
    let (dead, alive) = holders.split_at(count);
    assert!(dead.iter().any(|worker| worker.in_flight > 0), "{dead:?}");
    let survive: u64 = alive.iter().map(|frontend| frontend.in_flight).sum();

    let killed = Instant::now();
    for worker in dead {
        signal(worker.pid as i32, libc::SIGKILL);
    }
    eventually("the return of the dead workers' requests", || {
        u64::from(deployment.total()) == survive
    });
    println!("counts were exact {:?} after the kill", killed.elapsed());
    deployment.wait_for_workers();
    println!(
        "four workers were there {:?} after the kill",
        killed.elapsed()
    );
    let running = || {
        engines
            .iter()
            .map(|engine| engine.stat("running"))
            .sum::<u64>()
    };
    eventually("the engines' notice of the death", || running() == survive);

    // No engine has made more tokens for a request until now, so a client that gets one more is still served.
    let most = start.elapsed().as_millis() / 20 + 1;
    let served = |stream: &mut Stream| (0..=most).all(|_| stream.token());
    let served = asked.iter_mut().filter_map(|s| served(s).then_some(()));
    assert_eq!(served.count() as u64, survive, "the others' streams go on");
    drop(asked);
    deployment.settles();
}

#[test]
fn capacity_is_back_after_workers_that_held_it_were_killed() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight", "4"]);
    for round in 0..3 {
        let streams = begin_streams(&deployment, 8);
        assert_eq!(deployment.in_flight(), [4, 4], "round {round}");
        assert_eq!(
            complete(&agent(), &deployment.url("/v1/completions"), 1)
                .unwrap()
                .0,
            503
        );
        for worker in deployment.workers() {
            signal(worker, libc::SIGKILL);
        }
        eventually("the return of all places", || deployment.total() == 0);
        deployment.wait_for_workers();
        drop(streams);
        // The table knows of the deaths before the engines have read that their connections are closed.
        for engine in &engines {
            engine.becomes_idle();
        }
    }
    for engine in &engines {
        assert_eq!(
            engine.stat("peak"),
            4,
            "dead workers' requests made no room twice"
        );
    }
    deployment.settles();
}

#[test]
fn connections_that_were_not_accepted_survive_the_workers() {
    let engines = MockEngine::several(2, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let workers = deployment.workers();
    for &worker in &workers {
        stop(worker);
    }
    let mut waiting: Vec<_> = (0..40)
        .map(|_| Stream::ask(deployment.address, 2))
        .collect();
    for &worker in &workers {
        signal(worker, libc::SIGKILL);
    }
    for stream in &mut waiting {
        assert_eq!(stream.status(), 200);
        assert!(stream.rest().1);
    }
    deployment.wait_for_workers();
    deployment.settles();
}

#[test]
fn no_connection_is_refused_while_workers_are_killed() {
    let engines = MockEngine::several(2, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut served, mut cut) = (0, 0);
                    while !over.load(Relaxed) || served == 0 {
                        // `send` fails if it is refused.
                        let mut stream = Stream::ask(deployment.address, 2);
                        let whole = stream.rest().1;
                        served += u32::from(whole);
                        cut += u32::from(!whole);
                    }
                    (served, cut)
                })
            })
            .collect();
        let stop = StopClients(&over);
        let mut rounds = Rounds::new(6, "kills of workers that had requests");
        while rounds.another() {
            thread::sleep(Duration::from_millis(200));
            let busiest = deployment.busiest();
            signal(busiest, libc::SIGKILL);
            // Its requests stay counted until the reap. Until then it is shown as dead.
            let mut had = 0;
            eventually("the reap of the worker", || {
                let mut frontends = deployment.table.view().frontends.into_iter();
                let dead = frontends.find(|f| f.pid as i32 == busiest);
                had = had.max(dead.as_ref().map_or(0, |dead| dead.in_flight));
                dead.is_none()
            });
            rounds.fell(had > 0);
        }
        drop(stop);
        let results: Vec<_> = clients.into_iter().map(|c| c.join().unwrap()).collect();
        println!("served and cut, by client: {results:?}");
        let cut: u32 = results.iter().map(|(_, cut)| cut).sum();
        assert!(cut > 0, "no worker died with a request");
    });
    deployment.wait_for_workers();
    deployment.settles();
}

#[test]
fn an_engine_that_is_killed_is_down_for_all_until_it_is_back() {
    let mut engines = MockEngine::several(3, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let mut streams = begin_streams(&deployment, 12);
    assert_eq!(deployment.in_flight(), [4; 3]);
    let dead = engines.remove(0).kill();
    eventually("the end of the worker's streams", || {
        deployment.total() == 8
    });
    let url = deployment.url("/v1/completions");
    for _ in 0..30 {
        assert_eq!(
            complete(&agent(), &url, 1).unwrap().0,
            200,
            "others take over"
        );
    }
    assert_eq!(deployment.state(dead), Some(EngineState::Down));
    assert_eq!(deployment.in_flight().len(), 3);

    engines.push(MockEngine::again(dead, "0.02"));
    eventually("the engine's return", || {
        deployment.state(dead) == Some(EngineState::Active)
    });
    streams.extend(begin_streams(&deployment, 4));
    // Of an answer that was read to its end, the permit may be there for a moment longer.
    eventually("the new engine's share", || {
        deployment.in_flight() == [4; 3]
    });
    drop(streams);
    deployment.settles();
}

#[test]
fn an_engine_comes_back_though_who_found_it_down_has_died() {
    let mut engines = MockEngine::several(2, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let dead = engines.remove(0).kill();
    find_down(&deployment, dead);
    for worker in deployment.workers() {
        signal(worker, libc::SIGKILL);
    }
    engines.push(MockEngine::again(dead, "0.002"));
    eventually("the engine's return", || {
        deployment.state(dead) == Some(EngineState::Active)
    });
    deployment.wait_for_workers();
    deployment.settles();
}

#[test]
fn without_any_engine_requests_are_refused_and_health_says_so() {
    let mut engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let dead = engines.remove(0).kill();
    let (status, body) = complete(&agent(), &deployment.url("/v1/completions"), 1).unwrap();
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("no_engine"), "{body}");
    let health = || {
        agent()
            .get(deployment.url("/health"))
            .call()
            .unwrap()
            .status()
    };
    assert_eq!(health(), 503);
    engines.push(MockEngine::again(dead, "0.002"));
    eventually("the engine's return", || health() == 200);
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
    deployment.settles();
}

#[test]
fn a_parent_that_is_killed_leaves_workers_that_finish_and_end() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let workers = deployment.workers();
    let mut short: Vec<_> = (0..6).map(|_| deployment.stream(10)).collect();
    let mut endless = deployment.stream(1_000_000);
    signal(deployment.pid(), libc::SIGKILL);
    for stream in &mut short {
        assert!(stream.rest().1, "what is in flight is finished");
    }
    assert!(!endless.rest().1, "but not for ever");
    eventually("the end of the workers", || {
        workers.iter().all(|&worker| !is_running(worker))
    });
    assert_eq!(deployment.in_flight(), [0, 0]);
    assert!(
        deployment.table.view().frontends.is_empty(),
        "they have left in order"
    );
    for engine in &engines {
        engine.becomes_idle();
    }
}

#[test]
fn the_next_deployment_finds_a_table_that_works() {
    let mut engines = MockEngine::several(2, "0.002");
    let all = addresses(&engines);
    let deployment = Deployment::start(&all, &[]);
    let dead = engines.remove(0).kill();
    find_down(&deployment, dead);
    // An operator drains the other engine, and all processes die.
    let table = Table::open(deployment.table_path()).unwrap();
    table
        .drain(table.find(&format!("http://{}", all[1])).unwrap())
        .unwrap();
    drop(table);
    let stopped = deployment.workers();
    for &worker in &stopped {
        stop(worker);
    }
    signal(deployment.pid(), libc::SIGKILL);
    for worker in stopped {
        signal(worker, libc::SIGKILL);
    }
    let deployment = deployment.replace(&all);
    assert_eq!(deployment.state(dead), Some(EngineState::Down));
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
    engines.push(MockEngine::again(dead, "0.002"));
    eventually("the engine's return", || {
        deployment.state(dead) == Some(EngineState::Active)
    });
    deployment.settles();
}

#[test]
fn sigterm_finishes_what_is_in_flight_and_refuses_what_comes() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let mut short: Vec<_> = (0..6).map(|_| deployment.stream(30)).collect();
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of listening", || {
        std::net::TcpStream::connect(deployment.address).is_err()
    });
    for stream in &mut short {
        assert!(stream.rest().1, "what is in flight is finished");
    }
    eventually("the end of all processes", || {
        deployment.table.view().frontends.is_empty()
    });
    assert_eq!(deployment.in_flight(), [0, 0]);
}

#[test]
fn a_hangup_is_for_the_parent_alone() {
    let engines = MockEngine::several(1, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &["--workers=1"]);
    let workers = deployment.workers();
    let mut stream = deployment.stream(1_000_000);
    // As from a terminal that goes away, or `killall -HUP`.
    for _ in 0..3 {
        signal(workers[0], libc::SIGHUP);
        assert!((0..5).all(|_| stream.token()), "it goes on");
    }
    assert_eq!(deployment.workers(), workers);
}
