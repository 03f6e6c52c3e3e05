//! Q2: which request is served first, and that no later one overtakes it.

use crate::cancels::{poll, waiting_future};
use crate::{is_empty, places, taken};
use headcount::{Cap, Engine, Request, RouteError, Table};
use headcount_tests::{
    Actor, Ask, Random, Task, TestTable, Waited, eventually, spawn_all, waiting,
};
use std::time::Duration;

/// Finishes the request of each actor when it has its place. Returns in which order they had theirs.
fn served(actors: &mut [Actor]) -> Vec<usize> {
    let mut order = Vec::new();
    while order.len() < actors.len() {
        let mut next = None;
        // There is one place.
        eventually("one more is served", || {
            let mut waiting = (0..actors.len()).filter(|actor| !order.contains(actor));
            next = waiting.find(|actor| actors[*actor].is_served());
            next.is_some()
        });
        let next = next.expect("found above");
        order.push(next);
        actors[next].finish_one();
    }
    order
}

#[test]
fn q2_the_one_that_began_to_wait_first_is_served_first_whatever_its_process() {
    let mut random = Random::seeded();
    for _ in 0..10 {
        let table = TestTable::new(&places(1));
        let (_own, held) = taken(&table, 1);
        let mut actors = spawn_all(table.path(), 6);
        let mut begins: Vec<usize> = (0..6).collect();
        begins.sort_by_cached_key(|_| random.below(u64::MAX));
        for &actor in &begins {
            actors[actor].begins_to_wait(&table, Ask::new());
        }
        drop(held);
        assert_eq!(served(&mut actors), begins);
        is_empty(&table);
    }
}

#[test]
fn q2_a_smaller_class_is_served_first() {
    let table = TestTable::new(&places(1));
    let (_own, held) = taken(&table, 1);
    let mut actors = spawn_all(table.path(), 7);
    for (actor, class) in actors.iter_mut().zip([2, 0, 3, 1, 0, 2, 1]) {
        actor.begins_to_wait(&table, Ask::new().class(class));
    }
    drop(held);
    assert_eq!(served(&mut actors), [1, 4, 3, 6, 0, 5, 2]);
    is_empty(&table);
}

#[test]
fn q2_threads_of_one_process_and_of_others_are_one_queue() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let mut actor = Actor::joined(table.path());
    let (sender, order) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for number in [0, 1, 3, 4] {
            if number == 3 {
                actor.begins_to_wait(&table, Ask::new());
            }
            let (own, sender, before) = (&own, sender.clone(), waiting(&table));
            scope.spawn(move || {
                let permit = own.acquire(&Request::new(), crate::LONG);
                sender.send(number).unwrap();
                drop(permit);
            });
            eventually("one more waits", || waiting(&table) > before);
        }
        drop(held);
        for number in [0, 1, 2, 3, 4] {
            if number == 2 {
                assert!(actor.answer::<Waited>().outcome.is_ok());
                // The next ones wait for it.
                assert_eq!(order.try_recv().ok(), None);
                actor.finish_one();
            } else {
                assert_eq!(order.recv().unwrap(), number);
            }
        }
    });
    is_empty(&table);
}

/// The engine has room for a small request all the time, but one that needs more has come first.
#[test]
fn q2_a_later_request_is_refused_what_one_waits_for() {
    let options = Table::options().engine(Engine::named("a").max_tokens(100).max_in_flight(9));
    let table = TestTable::new(&options.max_waiting(9));
    let own = table.join().unwrap();
    let held = own.route_with(&Request::new().tokens(60)).unwrap();
    let mut first = Actor::joined(table.path());
    drop(own.route().expect("no request waits yet"));
    first.begins_to_wait(&table, Ask::new().tokens(50));
    let refused = |refused: Option<RouteError>| {
        let passes = RouteError::Saturated {
            cap: Cap::EngineRequests,
            passes: true,
        };
        assert_eq!(refused, Some(passes));
    };
    refused(own.route().err());
    refused(own.route_with(&Request::new().tokens(1)).err());
    refused(own.route_with(&Request::new().pin(0)).err());
    refused(own.route_with(&Request::new().class(3)).err());
    refused(own.route_many(2).err());
    let at_once = own.acquire(&Request::new(), Duration::ZERO);
    assert!(at_once.is_err(), "{at_once:?}");
    let other = Actor::joined(table.path()).refused(&Task::route());
    assert!(other.starts_with("Saturated"), "{other}");
    // One that comes from the class above does not come later.
    drop(held);
    assert!(first.answer::<Waited>().outcome.is_ok());
    drop(own.route().expect("no request waits any more"));
    first.finish_one();
    is_empty(&table);
}

#[test]
fn q2_a_request_of_an_earlier_class_may_go_before_one_that_waits() {
    let options = Table::options().engine(Engine::named("a").max_tokens(100));
    let table = TestTable::new(&options.max_waiting(9));
    let own = table.join().unwrap();
    let _held = own.route_with(&Request::new().tokens(60)).unwrap();
    let mut first = Actor::joined(table.path());
    first.begins_to_wait(&table, Ask::new().tokens(50).class(2));
    assert!(own.route_with(&Request::new().class(2)).is_err());
    drop(
        own.route_with(&Request::new().class(1))
            .expect("class 1 comes before class 2"),
    );
    drop(own.route().expect("class 0 comes before class 2"));
}

#[test]
fn q2_what_other_engines_have_is_not_held_up() {
    let full = |name: &str| Engine::named(name).max_in_flight(1);
    let options = Table::options().engine(full("a")).engine(full("b"));
    let table = TestTable::new(&options.max_waiting(9));
    let own = table.join().unwrap();
    let mut held = [0, 1].map(|engine| own.route_with(&Request::new().pin(engine)).ok());
    let mut actors = spawn_all(table.path(), 4);
    // In this order: for engine 0, for any but that, for any, for engine 0.
    actors[0].begins_to_wait(&table, Ask::new().pin(0));
    held[1] = None;
    drop(
        own.route()
            .expect("engine 1 has room, and the one that waits may not go there"),
    );
    held[1] = Some(own.route_with(&Request::new().pin(1)).unwrap());
    actors[1].begins_to_wait(&table, Ask::new().exclude(0));
    actors[2].begins_to_wait(&table, Ask::new());
    actors[3].begins_to_wait(&table, Ask::new().pin(0));
    let next = |actor: &mut Actor| actor.answer::<Waited>().outcome;
    held[1] = None;
    assert_eq!(next(&mut actors[1]), Ok(1));
    actors[1].finish_one();
    assert_eq!(next(&mut actors[2]), Ok(1));
    assert_eq!(waiting(&table), 2, "the two for engine 0 wait on");
    held[0] = None;
    assert_eq!(next(&mut actors[0]), Ok(0));
    actors[0].finish_one();
    assert_eq!(next(&mut actors[3]), Ok(0));
    actors[2].finish_one();
    actors[3].finish_one();
    is_empty(&table);
}

/// Others see fourteen kinds of requests of a process: those that come first, and not those that came first.
#[test]
fn q2_of_many_kinds_of_requests_others_see_those_that_come_first() {
    const ENGINES: usize = 21;
    let mut options = Table::options().max_waiting(1000);
    for engine in 0..ENGINES {
        options = options.engine(Engine::named(engine.to_string()).max_in_flight(1));
    }
    let table = TestTable::new(&options);
    let (own, mut held) = taken(&table, ENGINES);
    held.sort_by_key(|permit| permit.engine().index());
    let later = |engine| waiting_future(&own, &Request::new().class(3).pin(engine));
    let mut others: Vec<_> = (1..ENGINES).map(later).collect();
    let (mut first, first_is_woken) = waiting_future(&own, &Request::new().pin(0));
    let mut actor = Actor::joined(table.path());
    actor.begins_to_wait(&table, Ask::new().class(1).pin(0));
    drop(held.remove(0));
    eventually("it gets the place", || first_is_woken.is_woken());
    let placed = poll(&mut first, &first_is_woken);
    assert!(matches!(placed, Some(Ok(_))), "{placed:?}");
    drop((first, placed));
    assert!(actor.answer::<Waited>().outcome.is_ok());
    // As places fall free, so do the others, also those that were not seen at first.
    let (mut last, last_is_woken) = others.pop().unwrap();
    drop(others);
    actor.begins_to_wait(&table, Ask::new().class(3).pin(ENGINES - 1));
    drop(held.pop());
    eventually("the last one gets its place", || last_is_woken.is_woken());
    let placed = poll(&mut last, &last_is_woken);
    assert!(matches!(placed, Some(Ok(_))), "{placed:?}");
    drop((last, placed));
    assert!(actor.answer::<Waited>().outcome.is_ok());
    drop((held, actor));
    table.reap().unwrap();
    is_empty(&table);
}
