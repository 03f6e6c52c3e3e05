//! What a request is told that cannot wait, or has nothing to wait for any more.

use crate::cancels::{poll, waiting_future};
use crate::{AT_ONCE, LONG, is_empty, median, places, taken};
use headcount::{
    AcquireError, Cap, Engine, Error, Frontend, MAX_NAME_LEN, Options, Policy, Request, RouteError,
    Table,
};
use headcount_tests::{
    Actor, Ask, Random, Refused, TestTable, Waited, eventually, monotonic_ns, waiting,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// What `route_with` and `acquire` say to a request, which is the same.
fn told(table: &TestTable, request: &Request<'_>) -> RouteError {
    let own = table.join().unwrap();
    let routed = own.route_with(request).expect_err("it is refused");
    let acquired = own.acquire(request, LONG).map(drop);
    assert_eq!(acquired, Err(AcquireError::Route(routed)));
    routed
}

#[test]
fn q2_a_class_that_does_not_exist_is_said_so() {
    let table = TestTable::new(&places(1));
    for class in [4, 5, 255] {
        let told = told(&table, &Request::new().class(class));
        assert_eq!(told, RouteError::NoSuchClass { class });
    }
    let own = table.join().unwrap();
    drop(
        own.acquire(&Request::new().class(3), LONG)
            .expect("class 3 exists"),
    );
}

#[test]
fn q7_a_tenant_that_is_not_valid_is_said_so() {
    let table = TestTable::new(&places(1));
    let name = "n".repeat(MAX_NAME_LEN);
    let own = table.join().unwrap();
    drop(
        own.acquire(&Request::new().tenant(&name), LONG)
            .expect("a valid name"),
    );
    let name = "n".repeat(MAX_NAME_LEN + 1);
    let length = MAX_NAME_LEN as u32 + 1;
    let long = told(&table, &Request::new().tenant(&name));
    assert_eq!(long, RouteError::TenantName { length });
    let none = told(&table, &Request::new().tenant("a").share(0));
    assert_eq!(none, RouteError::NoShare);
    assert_eq!(told(&table, &Request::new().share(0)), RouteError::NoShare);
}

#[test]
fn q3_bounds_that_are_not_valid_are_said_so() {
    const MOST: u32 = (1 << 20) - 1;
    let refused = |options: Options| match options.memfd() {
        Err(Error::Option { option, found, .. }) => (option, found),
        other => panic!("{other:?}"),
    };
    let engine = || Table::options().engines(1);
    assert_eq!(refused(engine().max_waiting(0)), ("max_waiting", 0));
    let above = u64::from(MOST) + 1;
    assert_eq!(
        refused(engine().max_waiting(MOST + 1)),
        ("max_waiting", above)
    );
    let class = |class, bound| engine().max_waiting(9).max_waiting_of_class(class, bound);
    assert_eq!(refused(class(3, 0)), ("max_waiting_of_class", 0));
    assert_eq!(refused(class(3, MOST + 1)), ("max_waiting_of_class", above));
    assert_eq!(
        refused(class(4, 1)),
        ("the class of max_waiting_of_class", 4)
    );
    let alone = engine().max_waiting_of_class(0, 1);
    assert_eq!(refused(alone), ("max_waiting", 0));
    class(3, MOST)
        .max_waiting(MOST)
        .memfd()
        .expect("the largest bounds");
    // An apply says the same, and changes nothing.
    let table = TestTable::new(&places(1).max_waiting(7));
    let applied = table.apply(&places(1).max_waiting(0));
    assert!(matches!(applied, Err(Error::Option { .. })), "{applied:?}");
    assert_eq!(table.view().queue.unwrap().max_waiting, 7);
}

#[test]
fn q3_a_table_without_a_queue_lets_none_wait() {
    let engine = Engine::named("a").max_in_flight(1);
    let table = TestTable::new(&Table::options().engine(engine));
    let own = table.join().unwrap();
    let held = own.acquire(&Request::new(), LONG).expect("a place is free");
    assert_eq!(
        own.acquire(&Request::new(), LONG).unwrap_err(),
        AcquireError::NoQueue
    );
    assert_eq!(table.view().queue, None);
    drop(held);
    is_empty(&table);
}

#[test]
fn q2_a_request_that_no_waiting_helps_is_told_so_at_once() {
    let engine = Engine::named("a").max_tokens(100);
    let options = Table::options().engine(engine).max_waiting(9);
    let table = TestTable::new(&options);
    let (_own, _held) = taken(&table, 1);
    let large = told(&table, &Request::new().tokens(101));
    let never = RouteError::Saturated {
        cap: Cap::EngineTokens,
        passes: false,
    };
    assert_eq!(large, never);
    let engines = [table.engine_at(0).unwrap()];
    let excluded = told(&table, &Request::new().exclude(&engines));
    assert!(matches!(excluded, RouteError::Unavailable(why) if why.excluded() == 1));
    let pinned = told(&table, &Request::new().pin(1));
    assert!(
        matches!(pinned, RouteError::NoSuchEngine { .. }),
        "{pinned:?}"
    );
    table.down(0).unwrap();
    let down = told(&table, &Request::new());
    assert!(matches!(down, RouteError::Unavailable(why) if why.down() == 1));
    assert_eq!(waiting(&table), 0);
}

/// Also while others wait, so that it would not be its turn.
#[test]
fn q1_requests_that_never_have_room_together_are_told_so_at_once() {
    let table = TestTable::new(&places(2));
    let (own, held) = taken(&table, 2);
    let mut waiter = Actor::joined(table.path());
    waiter.begins_to_wait(&table, Ask::new());
    let told = own.acquire_many(3, &Request::new(), LONG).map(drop);
    let never = RouteError::Saturated {
        cap: Cap::EngineRequests,
        passes: false,
    };
    assert_eq!(told, Err(never.into()));
    drop(held);
    assert!(waiter.answer::<Waited>().outcome.is_ok());
}

#[test]
fn q1_a_table_that_was_opened_for_reading_shows_its_queue_and_lets_none_wait() {
    let table = TestTable::new(&places(1));
    let (_own, held) = taken(&table, 1);
    let mut waiter = Actor::joined(table.path());
    waiter.begins_to_wait(&table, Ask::new());
    let reader = Table::open_read_only(table.path()).unwrap();
    assert!(matches!(reader.join(), Err(Error::ReadOnly)));
    assert_eq!(waiting(&reader), 1);
    drop(held);
    assert!(waiter.answer::<Waited>().outcome.is_ok());
}

/// A way in which the engines go that a request waits for, and what it is told.
type End = (&'static str, Ask, fn(&Table), fn(&str) -> bool);

#[test]
fn q1_a_request_that_has_nothing_to_wait_for_any_more_is_told_so_at_once() {
    let ends: [End; 5] = [
        (
            "the pinned engine is removed",
            Ask::new().pin(0),
            |table| drop(table.remove(0)),
            |told| told.starts_with("Route(NoSuchEngine"),
        ),
        (
            "all engines go down",
            Ask::new(),
            |table| (0..2).for_each(|engine| drop(table.down(engine))),
            |told| told.starts_with("Route(Unavailable"),
        ),
        (
            "the pinned engine is drained",
            Ask::new().pin(0),
            |table| drop(table.drain(0)),
            |told| told.starts_with("Route(Unavailable"),
        ),
        (
            "all engines but the excluded one go",
            Ask::new().exclude(1),
            |table| drop(table.remove(0)),
            |told| told.starts_with("Route(Unavailable"),
        ),
        (
            "the caps become too small",
            Ask::new().tokens(80),
            |table| (0..2).for_each(|n| drop(table.set_max_tokens(n, Some(79)))),
            |told| told.starts_with("Route(Saturated") && told.contains("passes: false"),
        ),
    ];
    let mut random = Random::seeded();
    for (name, ask, act, expected) in ends {
        let times = (0..9).map(|_| {
            let engine = |name: &str| Engine::named(name).max_in_flight(1).max_tokens(100);
            let options = Table::options().engine(engine("a")).engine(engine("b"));
            let table = TestTable::new(&options.max_waiting(9));
            let (_own, _held) = taken(&table, 2);
            let mut waiter = Actor::joined(table.path());
            waiter.begins_to_wait(&table, ask.clone());
            random.pause(50_000);
            let began = monotonic_ns();
            act(&table);
            let waited: Waited = waiter.answer();
            let Err(Refused::Other(told)) = &waited.outcome else {
                panic!("{name}: {waited:?}");
            };
            assert!(expected(told), "{name}: {told}");
            assert_eq!(waiting(&table), 0);
            waited.after(began)
        });
        let median = median(times.collect());
        println!("{name}: {median:?}");
        assert!(median < AT_ONCE, "{name}: {median:?}");
    }
}

#[test]
fn q1_a_request_by_a_custom_policy_waits_like_any_other() {
    let options = places(1).engine(Engine::named("b").max_in_flight(1));
    let table = TestTable::new(&options);
    let (own, mut held) = taken(&table, 2);
    let asked = AtomicU32::new(0);
    let asked = std::sync::Arc::new(asked);
    let counting = std::sync::Arc::clone(&asked);
    let custom = own.clone().with_policy(Policy::custom(move |engine| {
        counting.fetch_add(1, Ordering::SeqCst);
        -f64::from(engine.in_flight)
    }));
    thread::scope(|scope| {
        let waits = scope.spawn(|| custom.acquire(&Request::new(), LONG));
        eventually("it waits", || waiting(&table) == 1);
        drop(held.pop());
        let permit = waits.join().unwrap().expect("it gets the place");
        assert!(asked.load(Ordering::SeqCst) > 0, "the policy was asked");
        drop(permit);
    });
    drop(held);
    is_empty(&table);
}

/// Its panic comes to the caller whose policy it is, whichever thread has asked the policy. Nothing of the request
/// stays, and others are served.
#[test]
fn q5_a_custom_policy_that_panics_ends_its_own_request_only() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let panicking = own
        .clone()
        .with_policy(Policy::custom(|_| panic!("of a policy")));
    thread::scope(|scope| {
        let begin = |frontend: &Frontend| {
            let (frontend, before) = (frontend.clone(), waiting(&table));
            let thread = scope.spawn(move || frontend.acquire(&Request::new(), LONG));
            eventually("one more waits", || waiting(&table) > before);
            thread
        };
        // The first one leads, and looks for all of them.
        let [first, second] = [begin(&panicking), begin(&panicking)];
        let (mut task, noted) = waiting_future(&panicking, &Request::new());
        let third = begin(&own);
        let (mut last, noted_last) = waiting_future(&own, &Request::new());
        drop(held);
        assert!(first.join().is_err() && second.join().is_err());
        eventually("the task is woken", || noted.is_woken());
        let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut task, &noted).is_none()));
        assert!(polled.is_err(), "the panic comes to the task");
        drop(third.join().unwrap().expect("it gets the place"));
        eventually("the last one is woken", || noted_last.is_woken());
        assert!(matches!(poll(&mut last, &noted_last), Some(Ok(_))));
    });
    is_empty(&table);
}
