//! S1 to S5: a publication is read whole, stops no process, and never hides what is in flight.
//!
//! Rules: docs/contract.md.

use headcount::{EngineStats, Error, PackedEngineStats, Policy, Request, Table};
use headcount_tests::{
    Actor, Damage, Random, Rounds, Task, TestTable, eventually, race, spawn_all, spread,
};
use std::thread;
use std::time::{Duration, Instant};

/// Reads the snapshot, and returns its number. Fails if its parts are of different publications.
fn whole(table: &Table) -> u64 {
    let view = table.view();
    let snapshot = view.snapshot.expect("something was published");
    let [number, again] = snapshot.words;
    assert_eq!(number, again);
    for engine in &view.engines {
        let stats = engine.stats.expect("every engine was published");
        let numbers = [stats.waiting, stats.running, stats.in_flight.unwrap()];
        assert_eq!(numbers.map(u64::from), [number % 100_003; 3]);
        assert_eq!(stats.kv_usage, (number % 1000) as f32 / 1000.0);
    }
    number
}

/// Whether a publisher that is dead or stopped has written a part of its next publication: then the copy
/// that is the next to be written no longer holds one publication, or holds one that is not to be seen yet.
fn is_half_way(table: &TestTable) -> bool {
    let file = Damage::to(table, table.path());
    let sequence = file.word("control", 0, 16) >> 1;
    let next = (sequence + 1) % 4;
    let word = |n| file.word("publications", next, n);
    let number = word(1);
    let stats: Vec<_> = (8..8 + 64).map(word).collect();
    let differs = number != word(2) || stats.iter().any(|word| *word != stats[0]);
    let last = file.word("publications", sequence % 4, 1);
    // By the fourth, all copies are of this publisher.
    differs || (last >= 4 && number > last)
}

#[test]
fn s1_a_publication_is_seen_whole_or_not_at_all() {
    let table = TestTable::with_engines(64);
    assert_eq!(table.view().snapshot, None, "nothing was published yet");
    let mut publisher = Actor::opened(table.path());
    publisher.publish_forever();
    eventually("a publication", || table.view().snapshot.is_some());
    let (first, mut last, mut changes) = (whole(&table), 0, 0);
    for _ in 0..30_000 {
        let number = whole(&table);
        assert!(number >= last, "{number} was seen after {last}");
        changes += usize::from(number != last);
        last = number;
    }
    assert!(
        changes > 100 && last > first,
        "only {changes} publications were seen"
    );
}

#[test]
fn s1_a_publication_carries_its_time() {
    let table = TestTable::with_engines(1);
    let mut publisher = table.publisher().unwrap();
    let before = Instant::now();
    publisher.publish(&[EngineStats::default()]).unwrap();
    thread::sleep(Duration::from_millis(30));
    let age = table.view().snapshot.unwrap().age;
    assert!(
        age >= Duration::from_millis(30) && age <= before.elapsed(),
        "{age:?}"
    );
    let before = Instant::now();
    publisher.publish_with(&[], [7, 8]).unwrap();
    let view = table.view();
    assert!(
        view.snapshot.unwrap().age <= before.elapsed(),
        "its own time, not the former one"
    );
    assert_eq!(view.snapshot.unwrap().words, [7, 8]);
    assert_eq!(
        view.engines[0].stats, None,
        "what a publication leaves out is absent"
    );
}

#[test]
fn s2_a_publisher_killed_half_way_costs_readers_nothing_and_is_taken_over() {
    let table = TestTable::with_engines(64);
    let frontend = table.join().unwrap();
    let mut random = Random::seeded();
    let mut rounds = Rounds::new(40, "deaths half-way");
    while rounds.another() {
        let mut publisher = Actor::opened(table.path());
        publisher.publish_forever();
        let pid = publisher.pid() as u32;
        let held = table.publisher();
        assert!(
            matches!(held, Err(Error::PublisherHeld { pid: p, .. }) if p == pid),
            "{held:?}"
        );
        eventually("a publication", || {
            table.view().snapshot.is_some_and(|s| s.words[0] > 0)
        });
        random.pause(500);
        publisher.kill();
        rounds.fell(is_half_way(&table));
        let last = whole(&table);
        assert_eq!(whole(&table), last, "the last complete one stays");
        drop(frontend.route().unwrap());
        assert_eq!(table.view().publisher, None);
        let mut next = table.publisher().expect("it is taken over at once");
        // The sequence starts again, so that the next round waits for its own publisher.
        next.publish_with(&[EngineStats::default(); 64], [0, 0])
            .unwrap();
    }
}

#[test]
fn s2_a_stopped_publisher_costs_readers_nothing() {
    let table = TestTable::with_engines(64);
    let frontend = table.join().unwrap();
    let mut publisher = Actor::opened(table.path());
    publisher.publish_forever();
    let mut random = Random::seeded();
    eventually("a publication", || table.view().snapshot.is_some());
    let mut rounds = Rounds::new(50, "stops half-way");
    while rounds.another() {
        random.pause(300);
        publisher.stop();
        rounds.fell(is_half_way(&table));
        let number = whole(&table);
        for _ in 0..100 {
            drop(frontend.route().unwrap());
            assert_eq!(whole(&table), number);
        }
        let held = table.publisher();
        assert!(
            matches!(held, Err(Error::PublisherHeld { .. })),
            "it is alive"
        );
        publisher.resume();
    }
}

#[test]
fn s3_a_snapshot_never_makes_an_engine_look_less_loaded() {
    // Engine 0 has more in flight, and the snapshot says that it has nothing to do.
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let _lead: Vec<_> = (0..3)
        .map(|_| frontend.route_with(&Request::new().pin(0)).unwrap())
        .collect();
    let mut publisher = table.publisher().unwrap();
    let idle = EngineStats::default();
    let busy = idle.running(1);
    publisher.publish(&[idle, busy]).unwrap();
    for policy in [Policy::in_flight(), Policy::open(), Policy::floor()] {
        let engine = frontend
            .clone()
            .with_policy(policy.clone())
            .route()
            .unwrap()
            .engine()
            .index();
        assert_eq!(engine, 1, "{policy:?}");
    }
}

#[test]
fn s3_pressure_and_other_traffic_do_raise_a_load() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let _even = frontend.route_many(20).unwrap();
    let mut publisher = table.publisher().unwrap();
    let queue = EngineStats::new()
        .waiting(5)
        .running(5)
        .kv_usage(0.9)
        .in_flight(10);
    let route = |policy: Policy| {
        frontend
            .clone()
            .with_policy(policy)
            .route()
            .unwrap()
            .engine()
            .index()
    };
    publisher.publish(&[queue, queue.kv_usage(0.1)]).unwrap();
    assert_eq!(
        [(); 3].map(|()| route(Policy::in_flight())),
        [1; 3],
        "5 * 6 * 0.4 above the other"
    );
    assert_eq!([(); 3].map(|()| route(Policy::open())), [1; 3]);

    let other_traffic = EngineStats::new()
        .waiting(0)
        .running(30)
        .kv_usage(0.0)
        .in_flight(10);
    let none = other_traffic.running(10);
    publisher.publish(&[none, other_traffic]).unwrap();
    assert_eq!(
        [(); 3].map(|()| route(Policy::open())),
        [0; 3],
        "20 that did not pass this table"
    );
    let mut wins = [0; 2];
    (0..10).for_each(|_| wins[route(Policy::in_flight())] += 1);
    assert_eq!(wins, [5, 5], "the default does not care");
    assert_eq!([(); 3].map(|()| route(Policy::floor())), [0; 3]);
}

#[test]
fn s4_old_news_is_dropped() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let mut publisher = table.publisher().unwrap();
    let busy = EngineStats::new().running(100);
    publisher.publish(&[busy, EngineStats::default()]).unwrap();
    let route = |limit| {
        let policy = Policy::floor().stale_after(limit);
        let frontend = frontend.clone().with_policy(policy);
        let mut wins = [0; 2];
        (0..10).for_each(|_| wins[frontend.route().unwrap().engine().index()] += 1);
        wins
    };
    assert_eq!(route(Duration::from_secs(3600)), [0, 10]);
    assert_eq!(route(Duration::ZERO), [5, 5], "none is ever fresh enough");
    thread::sleep(Duration::from_millis(50));
    assert_eq!(
        route(Duration::from_millis(20)),
        [5, 5],
        "it counts as absent"
    );
    assert_eq!(route(Duration::from_secs(3600)), [0, 10]);
}

#[test]
fn s5_the_burst_after_the_burst_splits_exactly() {
    let table = TestTable::with_engines(4);
    let mut publisher = table.publisher().unwrap();
    let mut actors = spawn_all(table.path(), 4);
    let mut rounds = Rounds::new(10, "second bursts that met");
    while rounds.another() {
        race::<Vec<u32>>(&mut actors, &Task::burst(64));
        assert_eq!(table.in_flight(), [64; 4]);
        // A snapshot of the full engines, not all sampled at the same time, stands from here on.
        let stats = [60, 64, 61, 64].map(|running| {
            EngineStats::new()
                .running(running)
                .waiting(64 - running)
                .kv_usage(0.4)
        });
        publisher.publish(&stats).unwrap();
        actors.iter_mut().for_each(|actor| actor.finish_all());
        rounds.fell(race::<Vec<u32>>(&mut actors, &Task::burst(16)).met);
        assert_eq!(spread(&table.in_flight()), 0, "{:?}", table.in_flight());
        actors.iter_mut().for_each(|actor| actor.finish_all());
    }
}

#[test]
fn statistics_of_an_engine_do_not_stick_to_its_slot() {
    let table = TestTable::with_engines(2);
    let mut publisher = table.publisher().unwrap();
    let busy = EngineStats::new().running(100);
    publisher.publish(&[busy; 2]).unwrap();
    table.remove(0).unwrap();
    assert_eq!(
        table.add(headcount::Engine::named("new")).unwrap().index(),
        0
    );
    let engines = table.view().engines;
    assert_eq!(
        (engines[0].stats, engines[1].stats.unwrap().running),
        (None, 100)
    );
    let read = |into: &mut [PackedEngineStats]| {
        let read = table.read_stats(into).unwrap();
        (read.engines, into.iter().map(|s| s.running()).collect())
    };
    let mut into = [PackedEngineStats::default(); 2];
    assert_eq!(read(&mut into), (2, vec![0, 100]), "nor for who reads fast");
    // One that comes into a slot of its own leaves the others what is theirs.
    table.add(headcount::Engine::named("third")).unwrap();
    let mut into = [PackedEngineStats::default(); 3];
    assert_eq!(read(&mut into), (2, vec![0, 100, 0]));
    publisher.publish(&[busy; 3]).unwrap();
    assert_eq!(read(&mut into), (3, vec![100; 3]), "it has its own now");
    publisher.publish(&[busy]).unwrap();
    let left_out = (1, vec![100, 0, 0]);
    assert_eq!(read(&mut into), left_out, "and of the last two, nothing");
}

#[test]
fn bad_statistics_are_refused_and_nothing_is_published() {
    let table = TestTable::with_engines(2);
    let mut publisher = table.publisher().unwrap();
    let good = EngineStats::new().running(5);
    publisher.publish(&[good; 2]).unwrap();
    for kv_usage in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.1, 1.1] {
        let bad = publisher.publish(&[good, good.kv_usage(kv_usage)]);
        assert!(
            matches!(bad, Err(Error::KvUsage { engine: 1, .. })),
            "{bad:?}"
        );
    }
    let many = publisher.publish(&[EngineStats::default(); 3]);
    assert!(
        matches!(
            many,
            Err(Error::TooManyStats {
                found: 3,
                engines: 2,
                ..
            })
        ),
        "{many:?}"
    );
    let engines = table.view().engines;
    assert!(
        engines
            .iter()
            .all(|engine| engine.stats.unwrap().running == 5)
    );
    publisher.publish(&[good]).unwrap();
}
