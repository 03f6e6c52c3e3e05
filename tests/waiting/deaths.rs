//! Q4: requests are served though others that wait die or stop, and no process reaps.

use crate::{is_empty, median, places, taken};
use headcount::{FrontendView, Table};
use headcount_tests::{
    Actor, Ask, Random, Rounds, Task, TestTable, Traced, Waited, monotonic_ns, spawn_all, waiting,
};
use std::thread;
use std::time::Duration;

/// How long a request may have to wait that could be served but for a death or a stop.
const MOST: Duration = Duration::from_millis(100);

/// Kills the actor in the first slot, and has another process take its lock as to reap it, and stop there: so no other
/// process can. Those that wait are stopped meanwhile, which would reap it. `before` is done before the kill.
fn kill_unreaped(
    table: &TestTable,
    actor: Actor,
    others: &[Actor],
    before: impl FnOnce(),
) -> (Actor, Traced) {
    let mut reaper = Actor::opened(table.path());
    others.iter().for_each(Actor::stop);
    before();
    actor.kill();
    let stopped = Traced::after_its_next_lock(&mut reaper, &Task::Reap);
    others.iter().for_each(Actor::resume);
    (reaper, stopped)
}

/// The frontends that are dead and were not reaped.
fn dead(table: &Table) -> Vec<FrontendView> {
    let frontends = table.view().frontends.into_iter();
    frontends.filter(|frontend| !frontend.alive).collect()
}

/// In how many rounds a request waited so long at most; the median, and the longest, which is that of a busy machine.
fn shown(what: &str, times: Vec<Duration>) -> Duration {
    let longest = times.iter().max().copied();
    let median = median(times);
    println!("{what}: {median:?} at the median, {longest:?} at most");
    median
}

#[test]
fn q4_the_next_one_is_served_though_the_first_one_was_killed_and_is_not_reaped() {
    let times = (0..20).map(|_| {
        let table = TestTable::new(&places(1));
        let mut actors = spawn_all(table.path(), 3);
        let (own, held) = taken(&table, 1);
        for actor in &mut actors {
            actor.begins_to_wait(&table, Ask::new());
        }
        let first = actors.remove(0);
        let (_reaper, _stopped) = kill_unreaped(&table, first, &actors, || ());
        let freed = monotonic_ns();
        drop(held);
        let waited: Waited = actors[0].answer();
        assert!(waited.outcome.is_ok(), "{waited:?}");
        let found = dead(&table);
        assert!(
            found.len() == 1 && found[0].waiting == 1,
            "not reaped: {found:?}"
        );
        // From now on the dead one is passed over.
        let freed_again = actors[0].finish_one();
        let last: Waited = actors[1].answer();
        assert_eq!(dead(&table).len(), 1, "not reaped");
        assert!(last.after(freed_again) < MOST, "{last:?}");
        drop(own);
        waited.after(freed)
    });
    let median = shown("the first one was killed", times.collect());
    assert!(median < MOST / 2, "{median:?}");
}

#[test]
fn q4_the_next_one_is_served_though_the_first_one_died_of_being_woken() {
    let times = (0..20).map(|_| {
        let table = TestTable::new(&places(1));
        let mut actors = spawn_all(table.path(), 2);
        let (_own, held) = taken(&table, 1);
        for actor in &mut actors {
            actor.begins_to_wait(&table, Ask::new());
        }
        let first = actors.remove(0);
        // It has been woken, and cannot answer, and then it is dead.
        first.stop();
        let (_reaper, _stopped) = kill_unreaped(&table, first, &actors, || drop(held));
        let freed = monotonic_ns();
        let waited: Waited = actors[0].answer();
        assert!(waited.outcome.is_ok(), "{waited:?}");
        assert_eq!(dead(&table).len(), 1, "not reaped");
        waited.after(freed)
    });
    let median = shown("the first one died when it had been woken", times.collect());
    assert!(median < MOST, "{median:?}");
}

#[test]
fn q4_the_next_one_is_served_though_the_one_that_finishes_dies_in_the_middle_of_it() {
    let mut random = Random::seeded();
    let mut times = Vec::new();
    let mut rounds = Rounds::new(60, "deaths before the finish had taken effect or after");
    let (mut before, mut after) = (0, 0);
    while rounds.another() {
        let table = TestTable::new(&places(1));
        let mut holder = Actor::joined(table.path());
        holder.route();
        let mut waiter = Actor::joined(table.path());
        waiter.begins_to_wait(&table, Ask::new());
        holder.tell(&Task::FinishOne);
        let end = monotonic_ns() + random.below(150_000);
        while monotonic_ns() < end {}
        holder.kill();
        let killed = monotonic_ns();
        // The waiting process reaps, if it has to.
        let waited: Waited = waiter.answer();
        assert!(waited.outcome.is_ok(), "{waited:?}");
        let engine = &table.view().engines[0];
        assert_eq!(engine.in_flight, 1, "its own request");
        match waited.end < killed {
            true => before += 1,
            false => after += 1,
        }
        times.push(waited.after(killed));
        rounds.fell(before > 0 && after > 0);
        waiter.finish_one();
        table.reap().unwrap();
        is_empty(&table);
    }
    println!("{after} of {} were served after the death", before + after);
    times.sort_unstable();
    let nearly_all = times[times.len() * 9 / 10];
    println!("nine of ten within {nearly_all:?}");
    assert!(nearly_all < MOST, "{nearly_all:?}");
}

#[test]
fn q4_one_that_is_stopped_is_passed_over_and_keeps_its_turn() {
    let mut times = Vec::new();
    for _ in 0..20 {
        let table = TestTable::new(&places(1));
        let (own, held) = taken(&table, 1);
        let mut actors = spawn_all(table.path(), 3);
        for actor in &mut actors {
            actor.begins_to_wait(&table, Ask::new());
        }
        let [mut first, mut second, mut third] = <[Actor; 3]>::try_from(actors).unwrap();
        first.stop();
        let freed = monotonic_ns();
        drop(held);
        let waited: Waited = second.answer();
        assert!(waited.outcome.is_ok(), "{waited:?}");
        let took = waited.after(freed);
        // By a clock that ticks every 4 ms or so.
        assert!(
            took > Duration::from_millis(5),
            "its turn lasts 10 ms: {took:?}"
        );
        times.push(took);
        assert_eq!(waiting(&table), 2);
        first.resume();
        // It goes on when it looks by itself, and may be found by others then.
        thread::sleep(Duration::from_millis(60));
        second.finish_one();
        let waited: Waited = first.answer();
        assert!(waited.outcome.is_ok(), "{waited:?}");
        assert_eq!(waiting(&table), 1, "the third one waits on");
        first.finish_one();
        assert!(third.answer::<Waited>().outcome.is_ok());
        third.finish_one();
        drop(own);
        is_empty(&table);
    }
    let median = shown("the first one was stopped", times);
    assert!(median < MOST / 2, "{median:?}");
}

/// A finish wakes the first one only. The others have to be found out by those behind them.
#[test]
fn q4_several_that_are_stopped_are_passed_over_together() {
    for kill in [false, true] {
        let times = (0..10).map(|_| {
            let table = TestTable::new(&places(1));
            let (_own, held) = taken(&table, 1);
            let mut first = spawn_all(table.path(), 4);
            for actor in &mut first {
                actor.begins_to_wait(&table, Ask::new());
            }
            let mut last = Actor::joined(table.path());
            last.begins_to_wait(&table, Ask::new());
            first.iter().for_each(Actor::stop);
            let freed = monotonic_ns();
            drop(held);
            if kill {
                first.drain(..).for_each(Actor::kill);
            }
            let waited: Waited = last.answer();
            assert!(waited.outcome.is_ok(), "{waited:?}");
            first.iter().for_each(Actor::resume);
            waited.after(freed)
        });
        let what = ["four were stopped", "four were killed"][usize::from(kill)];
        let median = shown(what, times.collect());
        assert!(median < MOST, "{median:?}");
    }
}

/// The same for a request that does not wait, while no process looks that waits.
#[test]
fn q4_several_that_are_stopped_hold_up_those_that_do_not_wait_for_their_turn_only() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let mut actors = spawn_all(table.path(), 3);
    for actor in &mut actors {
        actor.begins_to_wait(&table, Ask::new());
    }
    actors.iter().for_each(Actor::stop);
    drop(held);
    let freed = monotonic_ns();
    let mut got = own.route();
    while got.is_err() && monotonic_ns() - freed < 10_000_000_000 {
        thread::sleep(Duration::from_millis(1));
        got = own.route();
    }
    let took = Duration::from_nanos(monotonic_ns() - freed);
    println!("{took:?}");
    assert!(took > Duration::from_millis(5) && took < MOST, "{took:?}");
    actors.iter().for_each(Actor::resume);
    // Each is in line again when it has looked by itself.
    thread::sleep(Duration::from_millis(100));
    drop(got);
    for actor in &mut actors {
        assert!(actor.answer::<Waited>().outcome.is_ok());
        actor.finish_one();
    }
    is_empty(&table);
}

/// A stopped process that has been passed over holds up no other for the second time.
#[test]
fn q4_one_that_stays_stopped_is_waited_for_once() {
    let table = TestTable::new(&places(1));
    let (_own, held) = taken(&table, 1);
    let mut actors = spawn_all(table.path(), 3);
    for actor in &mut actors {
        actor.begins_to_wait(&table, Ask::new());
    }
    actors[0].stop();
    drop(held);
    assert!(actors[1].answer::<Waited>().outcome.is_ok());
    let mut times = Vec::new();
    // The second and the third one take turns.
    for round in 0..30 {
        let (holder, waiter) = (1 + round % 2, 2 - round % 2);
        let freed = actors[holder].finish_one();
        let waited: Waited = actors[waiter].answer();
        times.push(waited.after(freed));
        actors[holder].begins_to_wait(&table, Ask::new());
    }
    let median = shown("handed over beside a stopped one", times);
    assert!(median < crate::AT_ONCE, "{median:?}");
    actors[0].resume();
}

/// A later request that does not wait is refused for those 10 ms, and has the place after them.
#[test]
fn q4_one_that_is_stopped_holds_up_those_that_do_not_wait_for_its_turn_only() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let mut first = Actor::joined(table.path());
    first.begins_to_wait(&table, Ask::new());
    first.stop();
    drop(held);
    let freed = monotonic_ns();
    assert!(own.route().is_err(), "its turn has come just now");
    let mut got = own.route();
    while got.is_err() {
        thread::sleep(Duration::from_millis(1));
        got = own.route();
    }
    let took = Duration::from_nanos(monotonic_ns() - freed);
    println!("{took:?}");
    assert!(took > Duration::from_millis(5) && took < MOST, "{took:?}");
    drop(got);
    first.resume();
    assert!(first.answer::<Waited>().outcome.is_ok());
}

#[test]
fn q4_a_reap_returns_what_the_dead_held_in_the_queue() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let mut victim = Actor::joined(table.path());
    for (asks, expected) in [(1, 1), (5, 5)] {
        let asks = (0..asks).map(|class| Ask::new().class(class % 4)).collect();
        victim.tell(&Task::AcquireAll {
            asks,
            milliseconds: 60_000,
            held_for: 0,
        });
        headcount_tests::eventually("they wait", || waiting(&table) == expected);
        victim.kill();
        assert_eq!(waiting(&table), expected, "still counted");
        assert_eq!(dead(&table)[0].waiting, u64::from(expected));
        let reaped = table.reap().unwrap();
        assert_eq!((reaped.frontends, reaped.waiting), (1, u64::from(expected)));
        assert_eq!(waiting(&table), 0);
        assert!(table.verify().unwrap().faults.is_empty());
        victim = Actor::joined(table.path());
    }
    drop((held, own));
    is_empty(&table);
}
