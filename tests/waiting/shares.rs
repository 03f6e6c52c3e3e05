//! Q7: how tenants share, and that no request starves.

use crate::{is_empty, places, taken};
use headcount::{Engine, Options, Request, Table};
use headcount_tests::{Actor, Ask, Task, TestTable, Waited, eventually, spawn_all, waiting};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Has each actor wait with these requests while the one place is held, and then serves all, one after the other.
/// Returns which actor was served when.
fn order(table: &TestTable, actors: &mut [Actor], asks: &[Vec<Ask>]) -> Vec<usize> {
    let (_own, held) = taken(table, 1);
    let mut expected = 0;
    for (actor, asks) in actors.iter_mut().zip(asks) {
        expected += asks.len() as u32;
        actor.tell(&Task::AcquireAll {
            asks: asks.clone(),
            milliseconds: 60_000,
            held_for: 0,
        });
        eventually("they wait", || waiting(table) == expected);
    }
    drop(held);
    let mut served = Vec::new();
    for (number, actor) in actors[..asks.len()].iter_mut().enumerate() {
        let waited: Vec<Waited> = actor.answer();
        for waited in waited {
            assert!(waited.outcome.is_ok(), "{waited:?}");
            // Read before the request was finished, so in the order of service.
            served.push((waited.end, number));
        }
    }
    served.sort_unstable();
    served.into_iter().map(|(_, actor)| actor).collect()
}

fn count(served: &[usize], actor: usize) -> usize {
    served.iter().filter(|served| **served == actor).count()
}

#[test]
fn q7_tenants_are_served_by_their_shares_whichever_sends_more() {
    let table = TestTable::new(&places(1));
    let mut actors = spawn_all(table.path(), 2);
    // The one with the smaller share comes first, and sends more.
    let small = vec![Ask::new().tenant("small", 1); 60];
    let large = vec![Ask::new().tenant("large", 3); 30];
    let served = order(&table, &mut actors, &[small, large]);
    for at in (8..=40).step_by(8) {
        let (small, large) = (count(&served[..at], 0), count(&served[..at], 1));
        println!("of the first {at}: {small} small, {large} large");
        assert!(
            large.abs_diff(3 * small) <= 4,
            "{small} : {large}, not 1 : 3"
        );
    }
    assert_eq!(count(&served, 0), 60);
    is_empty(&table);
}

#[test]
fn q7_tenants_share_tokens_if_the_table_says_so() {
    let table = TestTable::new(&places(1).share_tokens(true));
    let mut actors = spawn_all(table.path(), 2);
    let long = vec![Ask::new().tenant("long", 3).tokens(900); 30];
    let short = vec![Ask::new().tenant("short", 1).tokens(100); 60];
    let served = order(&table, &mut actors, &[long, short]);
    for at in (12..=60).step_by(12) {
        let tokens = [count(&served[..at], 0) * 900, count(&served[..at], 1) * 100];
        println!(
            "of the first {at}: {} tokens long, {} short",
            tokens[0], tokens[1]
        );
        let difference = tokens[0].abs_diff(3 * tokens[1]);
        assert!(difference <= 4 * 900, "{tokens:?}, not 3 : 1");
    }
    is_empty(&table);
}

#[test]
fn q7_requests_without_a_tenant_are_one_more_tenant() {
    let table = TestTable::new(&places(1));
    let mut actors = spawn_all(table.path(), 2);
    let asks = [
        vec![Ask::new(); 30],
        vec![Ask::new().tenant("named", 1); 30],
    ];
    let served = order(&table, &mut actors, &asks);
    for at in (10..=60).step_by(10) {
        assert!(count(&served[..at], 0).abs_diff(at / 2) <= 2, "{served:?}");
    }
}

/// A tenant that was alone has had everything, and owes the others nothing. One that was not there has saved nothing up.
#[test]
fn q7_a_tenant_that_is_alone_gets_everything() {
    let table = TestTable::new(&places(1));
    let mut actors = spawn_all(table.path(), 2);
    let alone = vec![Ask::new().tenant("alone", 1); 40];
    let start = Instant::now();
    let served = order(&table, &mut actors, std::slice::from_ref(&alone));
    assert_eq!(served.len(), 40);
    // It has share 1, the other one share 100; nothing is kept for that.
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    let both = [
        vec![Ask::new().tenant("alone", 1); 20],
        vec![Ask::new().tenant("new", 1); 20],
    ];
    let served = order(&table, &mut actors, &both);
    for at in (10..=40).step_by(10) {
        assert!(count(&served[..at], 0).abs_diff(at / 2) <= 2, "{served:?}");
    }
}

/// Waits with a thread for each tenant and class, one after the other, while the one place is held. Returns who was served
/// when.
fn served(table: &TestTable, requests: &[(&'static str, u8)]) -> Vec<&'static str> {
    let (own, held) = taken(table, 1);
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (tenant, class) in requests.iter().copied() {
            let (own, order, before) = (&own, &order, waiting(table));
            scope.spawn(move || {
                let request = Request::new().tenant(tenant).class(class);
                let permit = own.acquire(&request, Duration::from_secs(60)).unwrap();
                order.lock().unwrap().push(tenant);
                drop(permit);
            });
            eventually("it waits", || waiting(table) > before);
        }
        drop(held);
    });
    order.into_inner().unwrap()
}

#[test]
fn q7_turns_of_those_that_gave_up_are_forgotten_when_none_waits() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    for _ in 0..20 {
        let gave_up = own.acquire(&Request::new().tenant("a"), Duration::from_millis(1));
        assert!(gave_up.is_err());
    }
    drop((held, own));
    let served = served(&table, &[("a", 0), ("b", 0), ("b", 0), ("b", 0), ("b", 0)]);
    assert!(served[..2].contains(&"a"), "{served:?}");
    is_empty(&table);
}

#[test]
fn q7_each_class_has_turns_of_its_own() {
    let table = TestTable::new(&places(1));
    let late = [("a", 3); 6];
    let early = [("a", 0), ("a", 0), ("b", 0), ("b", 0)];
    let served = served(&table, &[&late[..], &early[..]].concat());
    assert!(served[..2].contains(&"a"), "{served:?}");
    is_empty(&table);
}

#[test]
fn q7_classes_come_before_shares() {
    let table = TestTable::new(&places(1));
    let mut actors = spawn_all(table.path(), 2);
    let asks = [
        vec![Ask::new().class(1).tenant("large", 1000); 10],
        vec![Ask::new().class(0).tenant("small", 1); 10],
    ];
    let served = order(&table, &mut actors, &asks);
    assert_eq!(count(&served[..10], 1), 10, "{served:?}");
}

/// Two processes keep the engine busy with small requests, of which each has room by itself at nearly any time.
#[test]
fn q7_a_request_of_many_tokens_is_not_starved_by_small_ones() {
    let options = |by_tokens| -> Options {
        let engine = Engine::named("a").max_tokens(100);
        let options = Table::options().engine(engine).max_waiting(1000);
        options.share_tokens(by_tokens)
    };
    for by_tokens in [false, true] {
        let table = TestTable::new(&options(by_tokens));
        let stop = AtomicBool::new(false);
        let small = |by_route: bool| {
            let frontend = table.join().unwrap();
            let request = Request::new().tokens(20);
            let mut served = 0;
            while !stop.load(Ordering::SeqCst) {
                let permit = match by_route {
                    true => frontend.route_with(&request).ok(),
                    false => frontend.acquire(&request, crate::LONG).ok(),
                };
                thread::sleep(Duration::from_millis(2));
                served += u32::from(permit.is_some());
            }
            served
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..10)
                .map(|number| scope.spawn(move || small(number % 3 == 0)))
                .collect();
            let mut large = Actor::joined(table.path());
            thread::sleep(Duration::from_millis(20));
            let mut times = Vec::new();
            for _ in 0..20 {
                let waited = large.acquire(Ask::new().tokens(100), 20_000);
                assert!(waited.outcome.is_ok(), "{waited:?}");
                large.finish_one();
                times.push(waited.took());
                thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::SeqCst);
            let served: u32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
            let longest = times.iter().max().copied().unwrap();
            println!("large: {longest:?} at most; small: {served}");
            assert!(longest < Duration::from_secs(1), "{times:?}");
        });
        is_empty(&table);
    }
}
