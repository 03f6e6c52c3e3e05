//! C7: ties favour no engine.

use headcount::{Engine, Request, Table};
use headcount_tests::{Actor, Task, TestTable, race, spawn_all, spread, sum};

#[test]
fn c7_ties_favour_no_engine() {
    let table = TestTable::with_engines(5);
    let mut actors = spawn_all(table.path(), 3);
    // Each request finishes before the next one arrives, so all engines are equal every time.
    for actor in &mut actors {
        assert_eq!(actor.break_ties(1000), [200; 5], "per frontend");
    }
}

#[test]
fn c7_frontends_that_have_one_tie_each_favour_none() {
    let table = TestTable::with_engines(4);
    let mut actors = spawn_all(table.path(), 4);
    let wins = sum(4, actors.iter_mut().map(|actor| actor.break_ties(1)));
    assert_eq!(spread(&wins), 0, "{wins:?}");
}

#[test]
fn c7_engines_next_to_those_that_are_out_win_no_more_often() {
    let table = TestTable::with_engines(8);
    (1..7).for_each(|engine| table.drain(engine).unwrap());
    let mut wins = [0_u32; 8];
    for _ in 0..800 {
        wins[table.join().unwrap().route().unwrap().engine().index()] += 1;
    }
    assert!(wins[0].abs_diff(400) < 80, "{wins:?}");
}

#[test]
fn c7_a_route_without_a_tie_leaves_the_order_of_ties() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let mut wins = [0; 2];
    for _ in 0..100 {
        drop(frontend.route_with(&Request::new().pin(1)).unwrap());
        drop(frontend.route_with(&Request::new().prefer(1, 0)).unwrap());
        assert!(frontend.route_many(1 << 30).is_err());
        wins[frontend.route().unwrap().engine().index()] += 1;
    }
    assert_eq!(wins, [50, 50]);
}

#[test]
fn c7_ties_among_some_favour_none_of_them() {
    let table = TestTable::with_engines(8);
    for engine in [2, 3, 4, 5, 6] {
        table.down(engine).unwrap();
    }
    let mut actor = Actor::joined(table.path());
    assert_eq!(actor.break_ties(900), [300, 300, 0, 0, 0, 0, 0, 300]);
}

#[test]
fn c7_frontends_that_live_for_one_request_favour_none() {
    let table = TestTable::with_engines(4);
    let mut wins = vec![0; 4];
    for _ in 0..80 {
        wins[table.join().unwrap().route().unwrap().engine().index()] += 1;
    }
    assert_eq!(wins, [20; 4]);
}

#[test]
fn c7_racing_frontends_favour_none() {
    let table = TestTable::with_engines(4);
    let mut actors = spawn_all(table.path(), 4);
    let mut wins = vec![0; 4];
    // While one is preempted in the middle of a request, its engine loses every tie against it. That
    // is chance, and evens out over many; a favour does not.
    let mut met = 0;
    for _ in 0..20 {
        let raced = race::<Vec<u32>>(&mut actors, &Task::BreakTies { requests: 100_000 });
        met += usize::from(raced.met);
        wins = sum(4, [wins, raced.placed()]);
        let mean = wins.iter().sum::<u32>() / 4;
        if met > 0 && spread(&wins) < mean / 12 {
            return;
        }
    }
    panic!("{wins:?}, and they met {met} times");
}

#[test]
fn c7_engines_that_come_after_the_frontends_win_their_first_ties_as_often_as_others() {
    for engines_before in [0, 1, 2] {
        let options = Table::options().engines(engines_before).max_engines(8);
        let table = TestTable::new(&options);
        let mut actors = spawn_all(table.path(), 12);
        // A frontend that joins anew has another order.
        let frontends: Vec<_> = (0..40).map(|_| table.join().unwrap()).collect();
        for number in engines_before..4 {
            table.add(Engine::named(number.to_string())).unwrap();
        }
        let mut wins = sum(4, actors.iter_mut().map(|actor| actor.break_ties(1)));
        for frontend in &frontends {
            wins[frontend.route().unwrap().engine().index()] += 1;
        }
        // 13 each, and less than one time in 10^4 as few as 3 by chance; the orders are always the same.
        assert!(
            wins.iter().all(|wins| *wins > 3),
            "{engines_before} before: {wins:?}"
        );
    }
}
