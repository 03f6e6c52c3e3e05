//! Q1: a place that a waiting request may use does not stay free.

use crate::{AT_ONCE, LONG, is_empty, median, places};
use headcount::{Engine, EngineId, Frontend, Options, Permit, Request, Table};
use headcount_tests::{
    Actor, Ask, Random, TestTable, Waited, eventually, monotonic_ns, spawn_all, waiting,
};
use std::thread;
use std::time::Duration;

/// A table, who holds its places, and who waits.
struct Scene {
    table: TestTable,
    own: Frontend,
    permits: Vec<Permit>,
    holder: Option<Actor>,
}

impl Scene {
    fn route(&mut self, request: &Request<'_>) {
        let permit = self.own.route_with(request);
        self.permits.push(permit.expect("there is room"));
    }

    fn holder(&mut self) -> &mut Actor {
        self.holder.as_mut().expect("it lives")
    }
}

/// A way in which a place comes free.
struct Way {
    name: &'static str,
    options: fn() -> Options,
    /// The request that waits.
    ask: fn() -> Ask,
    fill: fn(&mut Scene),
    free: fn(&mut Scene),
}

impl Way {
    /// A way in which all places of the table are held by a request of the test's process.
    const fn new(name: &'static str, options: fn() -> Options, free: fn(&mut Scene)) -> Self {
        Self {
            name,
            options,
            ask: Ask::new,
            fill: |scene| scene.route(&Request::new()),
            free,
        }
    }
}

fn tokens(count: u32) -> Options {
    let engine = Engine::named("a").max_tokens(count);
    Table::options().engine(engine).max_waiting(9)
}

const WAYS: [Way; 15] = [
    Way {
        fill: |scene| {
            scene.holder().route();
        },
        ..Way::new(
            "a finish in another process",
            || places(1),
            |scene| {
                scene.holder().finish_one();
            },
        )
    },
    Way::new("a finish", || places(1), |scene| scene.permits.clear()),
    Way {
        ask: || Ask::new().pin(1),
        ..Way::new(
            "a finish on another engine, under a cap of the table",
            || Table::options().engines(2).max_in_flight(1).max_waiting(9),
            |scene| scene.permits.clear(),
        )
    },
    Way {
        ask: || Ask::new().tokens(60),
        fill: |scene| scene.route(&Request::new().tokens(100)),
        ..Way::new(
            "tokens given back",
            || tokens(100),
            |scene| {
                scene.permits[0].set_tokens(40).expect("fewer tokens");
            },
        )
    },
    Way {
        ask: || Ask::new().tokens(60),
        fill: |scene| scene.route(&Request::new().tokens(100)),
        ..Way::new(
            "a finish with tokens",
            || tokens(100),
            |scene| {
                scene.permits.clear();
            },
        )
    },
    Way {
        fill: |scene| {
            scene.holder().route();
        },
        ..Way::new(
            "a reap",
            || places(1),
            |scene| {
                drop(scene.holder.take());
                scene.table.reap().expect("reaps");
            },
        )
    },
    Way {
        fill: |scene| {
            scene.table.down(1).expect("an engine");
            scene.route(&Request::new());
        },
        ..Way::new(
            "an engine that comes up",
            || places(1).engine("b"),
            |scene| {
                scene.table.up(1).expect("an engine");
            },
        )
    },
    Way {
        fill: |scene| {
            scene.table.drain(1).expect("an engine");
            scene.route(&Request::new());
        },
        ..Way::new(
            "an engine that was drained",
            || places(1).engine("b"),
            |scene| {
                scene.table.up_if_down(1).expect("an engine");
                scene.table.up(1).expect("an engine");
            },
        )
    },
    Way::new(
        "an engine that is added",
        || places(1).max_engines(2),
        |scene| {
            scene.table.add("b").expect("there is room");
        },
    ),
    Way::new(
        "a cap that is raised",
        || places(1),
        |scene| {
            scene
                .table
                .set_max_in_flight(0, Some(2))
                .expect("an engine");
        },
    ),
    Way::new(
        "a cap that is taken away",
        || places(1),
        |scene| {
            scene.table.set_caps(0, None, None).expect("an engine");
        },
    ),
    Way {
        ask: || Ask::new().tokens(60),
        fill: |scene| scene.route(&Request::new().tokens(100)),
        ..Way::new(
            "a cap in tokens that is raised",
            || tokens(100),
            |scene| {
                scene.table.set_max_tokens(0, Some(160)).expect("an engine");
            },
        )
    },
    Way::new(
        "a cap of the table that is raised",
        || Table::options().engines(1).max_in_flight(1).max_waiting(9),
        |scene| {
            scene.table.set_total_max_in_flight(Some(2)).expect("a cap");
        },
    ),
    Way::new(
        "an apply that raises a cap",
        || places(1),
        |scene| {
            scene.table.apply(&places(2)).expect("applies");
        },
    ),
    Way::new(
        "an apply that adds an engine",
        || places(1).max_engines(2),
        |scene| {
            let options = places(1).engine("b").max_engines(2);
            scene.table.apply(&options).expect("applies");
        },
    ),
];

#[test]
fn q1_a_place_that_comes_free_is_used_at_once_however_it_comes_free() {
    const ROUNDS: usize = 15;
    let mut random = Random::seeded();
    for way in &WAYS {
        let times = (0..ROUNDS).map(|_| handed_over(way, &mut random)).collect();
        let median = median(times);
        println!("{}: {median:?}", way.name);
        assert!(median < AT_ONCE, "{}: {median:?}", way.name);
    }
}

/// Returns how long after the beginning of what frees it a place is used.
fn handed_over(way: &Way, random: &mut Random) -> Duration {
    let table = TestTable::new(&(way.options)());
    let mut scene = Scene {
        own: table.join().unwrap(),
        permits: Vec::new(),
        holder: Some(Actor::joined(table.path())),
        table,
    };
    (way.fill)(&mut scene);
    let mut waiter = Actor::joined(scene.table.path());
    waiter.begins_to_wait(&scene.table, (way.ask)());
    // It looks by itself every 50 ms: at any moment of these the place comes free.
    random.pause(50_000);
    assert_eq!(waiting(&scene.table), 1, "{}: it waits", way.name);
    let freed = monotonic_ns();
    (way.free)(&mut scene);
    let waited: Waited = waiter.answer();
    assert!(waited.outcome.is_ok(), "{}: {waited:?}", way.name);
    waiter.finish_one();
    scene.permits.clear();
    scene.holder = None;
    scene.table.reap().unwrap();
    is_empty(&scene.table);
    waited.after(freed)
}

/// Eight processes want four places. At each finish, one place goes on to the one that waits longest.
#[test]
fn q1_no_place_stays_free_while_a_process_waits() {
    let table = TestTable::new(&places(4));
    let mut actors = spawn_all(table.path(), 8);
    let mut times = Vec::new();
    for actor in &mut actors[..4] {
        assert!(actor.acquire(Ask::new(), 0).outcome.is_ok());
    }
    for actor in &mut actors[4..] {
        actor.begins_to_wait(&table, Ask::new());
    }
    for _ in 0..200 {
        // The one that has held its place for longest waits again.
        let mut last = actors.remove(0);
        let freed = last.finish_one();
        let next: Waited = actors[3].answer();
        assert!(next.outcome.is_ok(), "{next:?}");
        times.push(next.after(freed));
        last.begins_to_wait(&table, Ask::new());
        assert_eq!((table.in_flight(), waiting(&table)), (vec![4], 4));
        actors.push(last);
    }
    let median = median(times);
    println!("{median:?}");
    assert!(median < AT_ONCE, "{median:?}");
}

/// The first in line waits for more tokens than there are. When it gives up, the next one has room at once, though no
/// place comes free then.
#[test]
fn q1_the_next_one_is_served_at_once_when_the_first_one_gives_up() {
    let mut random = Random::seeded();
    let times = (0..20).map(|_| {
        let table = TestTable::new(&tokens(100));
        let own = table.join().unwrap();
        let _held = own.route_with(&Request::new().tokens(50)).unwrap();
        let mut actors = spawn_all(table.path(), 2);
        actors[0].begins_to_wait_for(&table, Ask::new().tokens(80), 60);
        random.pause(20_000);
        actors[1].begins_to_wait(&table, Ask::new().tokens(20));
        let [first, next] = [0, 1].map(|actor| actors[actor].answer::<Waited>());
        assert!(first.is_too_long(), "{first:?}");
        assert!(next.outcome.is_ok(), "{next:?}");
        assert!(
            next.took() > Duration::from_millis(20),
            "it has waited: {next:?}"
        );
        next.after(first.end)
    });
    let median = median(times.collect());
    println!("{median:?}");
    // By itself the second one looks every 10 ms.
    assert!(median < AT_ONCE / 4, "{median:?}");
}

/// The same when the first one is killed and reaped.
#[test]
fn q1_the_next_one_is_served_at_once_when_the_first_one_is_reaped() {
    let times = (0..20).map(|_| {
        let table = TestTable::new(&tokens(100));
        let own = table.join().unwrap();
        let _held = own.route_with(&Request::new().tokens(50)).unwrap();
        let [mut first, mut next] = [0, 1].map(|_| Actor::joined(table.path()));
        first.begins_to_wait(&table, Ask::new().tokens(80));
        next.begins_to_wait(&table, Ask::new().tokens(20));
        first.kill();
        table.reap().unwrap();
        let reaped = monotonic_ns();
        let next: Waited = next.answer();
        assert!(next.outcome.is_ok(), "{next:?}");
        next.after(reaped)
    });
    let median = median(times.collect());
    println!("{median:?}");
    // By itself the second one looks every 10 ms.
    assert!(median < AT_ONCE / 4, "{median:?}");
}

/// A request excludes an engine that is in the table no more. The engine that has its slot now is none of those.
#[test]
fn q1_an_engine_that_is_gone_keeps_no_request_from_the_next_one_in_its_slot() {
    let times = (0..20).map(|round| {
        let table = TestTable::new(&places(1));
        let gone = [table.engine_at(0).unwrap(), EngineId::new(5000, 0)];
        table.remove(0).unwrap();
        let next = table.add(Engine::named("b").max_in_flight(1)).unwrap();
        assert_eq!(next.index(), 0);
        let [own, other] = [0, 1].map(|_| table.join().unwrap());
        let held = own.route().unwrap();
        let waits = thread::spawn(move || {
            let request = Request::new().exclude(&gone);
            let permit = other.acquire(&request, LONG);
            (permit.map(|permit| permit.engine()), monotonic_ns())
        });
        eventually("it waits", || waiting(&table) == 1);
        thread::sleep(Duration::from_millis(round % 7 * 5));
        let start = monotonic_ns();
        drop(held);
        let (engine, end) = waits.join().unwrap();
        assert_eq!(engine, Ok(next));
        Duration::from_nanos(end - start)
    });
    let median = median(times.collect());
    println!("{median:?}");
    assert!(median < AT_ONCE, "{median:?}");
}
