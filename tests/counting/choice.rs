//! C2: a choice and its count are one step.

use headcount::{Permit, Table};
use headcount_tests::{Actor, Random, Rounds, Task, TestTable, race, spawn_all, spread};
use std::sync::Barrier;
use std::thread;

#[test]
fn c2_a_burst_of_several_processes_splits_exactly() {
    let table = TestTable::with_engines(4);
    let mut publisher = Actor::opened(table.path());
    publisher.publish_forever();
    let mut actors = spawn_all(table.path(), 4);
    let published = || table.view().snapshot.map(|snapshot| snapshot.words);
    let mut rounds = Rounds::new(10, "bursts that met, and a publication amid them");
    for round in 1.. {
        if !rounds.another() {
            break;
        }
        let before = published();
        let raced = race::<Vec<u32>>(&mut actors, &Task::burst(256));
        rounds.fell(raced.met && published() != before);
        assert_eq!(raced.placed(), [256; 4]);
        assert_eq!(table.in_flight(), [256 * round; 4]);
    }
}

#[test]
fn c2_the_spread_is_at_most_one_at_every_instant() {
    let table = TestTable::with_engines(7);
    let mut actors = spawn_all(table.path(), 3);
    let mut random = Random::seeded();
    let mut rounds = Rounds::new(40, "counts amid a burst");
    while rounds.another() {
        actors
            .iter_mut()
            .for_each(|actor| actor.tell(&Task::burst(2000)));
        random.pause(300);
        // All of them are frozen wherever they are, so that the counts are of one instant.
        actors.iter().for_each(Actor::stop);
        let counts = table.in_flight();
        // Not before its first request, and not after its last.
        rounds.fell((1..6000).contains(&counts.iter().sum::<u32>()));
        assert!(spread(&counts) <= 1, "{counts:?}");
        actors.iter().for_each(Actor::resume);
        for actor in &mut actors {
            actor.answer::<Vec<u32>>();
            actor.finish_all();
        }
    }
}

#[test]
fn c2_threads_of_one_process_split_exactly_too() {
    let table = TestTable::new(&Table::options().engines(6).threads(1));
    let frontend = table.join().unwrap();
    let mut rounds = Rounds::new(3, "threads that met");
    while rounds.another() {
        let start = Barrier::new(5);
        let permits: Vec<Vec<Permit>> = thread::scope(|scope| {
            let route = || {
                start.wait();
                (0..600).map(|_| frontend.route().unwrap()).collect()
            };
            let threads: Vec<_> = (0..5).map(|_| scope.spawn(route)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(table.in_flight(), [500; 6]);
        // One that is alone gives each engine as many.
        let on = |permits: &[Permit], engine| {
            permits
                .iter()
                .filter(|p| p.engine().index() == engine)
                .count()
        };
        rounds.fell(
            permits
                .iter()
                .any(|own| (0..6).any(|engine| on(own, engine) != 100)),
        );
        drop(permits);
        assert_eq!(table.in_flight(), [0; 6]);
    }
}
