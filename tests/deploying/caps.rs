//! C4 and C5: caps of the table that change while frontends run.

use headcount::{Cap, Frontend, Permit, Request, RouteError, Table};
use headcount_tests::{Rounds, TestTable, eventually};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

#[test]
fn c4_a_lowered_cap_of_the_table_takes_nothing_away_and_lets_nothing_in() {
    let table = TestTable::new(&Table::options().engines(2));
    let frontend = table.join().unwrap();
    // In flight before there was a cap.
    let mut held = frontend.route_many(5).unwrap();
    let cap = |requests| {
        table
            .apply(&Table::options().max_in_flight(requests))
            .map(drop)
    };
    cap(7).unwrap();
    held.extend(frontend.route_many(2).unwrap());
    let refused = |frontend: &Frontend| match frontend.route() {
        Err(RouteError::Saturated { cap, passes }) => (cap, passes),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&frontend), (Cap::TableRequests, true));
    cap(3).unwrap();
    assert_eq!(table.in_flight(), [4, 3]);
    while held.len() > 3 {
        held.pop();
        assert_eq!(held.len() < 3, frontend.route().is_ok());
    }
    held.pop();
    held.push(frontend.route().unwrap());
    assert_eq!(refused(&frontend), (Cap::TableRequests, true));
    cap(0).unwrap();
    assert_eq!(refused(&frontend), (Cap::TableRequests, false));
    assert!(!table.apply(&Table::options()).unwrap().is_empty());
    held.extend(frontend.route_many(50).unwrap());
    drop(held);
    assert_eq!(table.in_flight(), [0, 0]);
    let verified = table.verify().unwrap();
    assert!(
        verified.is_consistent() && verified.busy.is_empty(),
        "{verified:?}"
    );
}

#[test]
fn c5_a_cap_of_the_table_on_tokens_can_come_and_go() {
    let table = TestTable::new(&Table::options().engines(2));
    let frontend = table.join().unwrap();
    let tokens = |tokens| frontend.route_with(&Request::new().tokens(tokens));
    let held = tokens(50).unwrap();
    let cap = |cap| table.apply(&Table::options().max_tokens(cap)).map(drop);
    cap(80).unwrap();
    assert!(matches!(
        tokens(31),
        Err(RouteError::Saturated {
            cap: Cap::TableTokens,
            passes: true
        })
    ));
    let more = tokens(30).unwrap();
    assert!(frontend.route().is_ok(), "no cap on requests");
    cap(40).unwrap();
    drop(held);
    assert!(tokens(11).is_err());
    assert!(tokens(10).is_ok());
    drop(more);
    assert!(matches!(
        tokens(41),
        Err(RouteError::Saturated {
            cap: Cap::TableTokens,
            passes: false
        })
    ));
    assert_eq!(table.tokens(), [0, 0]);
}

#[test]
fn c5_a_request_without_tokens_needs_no_room_for_any() {
    let capped = |tokens| {
        Table::options()
            .engines(2)
            .max_in_flight(100)
            .max_tokens(tokens)
    };
    let table = TestTable::new(&capped(100));
    let frontend = table.join().unwrap();
    let _held = frontend.route_with(&Request::new().tokens(80)).unwrap();
    table.apply(&capped(50)).unwrap();
    let one = Request::new().tokens(1);
    let full = frontend.route_with(&one).unwrap_err();
    assert!(
        matches!(
            full,
            RouteError::Saturated {
                cap: Cap::TableTokens,
                passes: true
            }
        ),
        "{full:?}"
    );
    let _none = frontend.route().unwrap();
    assert_eq!(frontend.route_many(3).unwrap().len(), 3);
}

/// Ends the racing threads, also if the test fails.
struct StopsAtLast<'a>(&'a AtomicBool);

impl Drop for StopsAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Racing frontends against a cap that moves. They count what they hold beside the table: less than is in
/// flight, for a moment, and never more.
#[test]
fn c4_the_tables_cap_holds_while_it_changes_under_racing_frontends() {
    const NONE: usize = usize::MAX;
    let table = TestTable::new(&Table::options().engines(3));
    let deployment = table.deploy().unwrap();
    let stop = AtomicBool::new(false);
    let (held, limit, refused) = (
        AtomicUsize::new(0),
        AtomicUsize::new(NONE),
        AtomicUsize::new(0),
    );
    let laps = [const { AtomicUsize::new(0) }; 3];
    let race = |lap: &AtomicUsize| {
        let frontend = table.join().unwrap();
        let mut permits = VecDeque::new();
        let finish = |permit: Option<Permit>| {
            held.fetch_sub(usize::from(permit.is_some()), Ordering::SeqCst);
            drop(permit);
        };
        while !stop.load(Ordering::SeqCst) {
            match frontend.route() {
                Ok(permit) => {
                    let now = held.fetch_add(1, Ordering::SeqCst) + 1;
                    let limit = limit.load(Ordering::SeqCst);
                    assert!(now <= limit, "{now} held under a cap of {limit}");
                    permits.push_back(permit);
                }
                Err(_) => _ = refused.fetch_add(1, Ordering::SeqCst),
            }
            if permits.len() > 8 || frontend.table().view().max_in_flight.is_some() {
                finish(permits.pop_front());
            }
            lap.fetch_add(1, Ordering::SeqCst);
        }
        permits.into_iter().for_each(|permit| finish(Some(permit)));
    };
    thread::scope(|scope| {
        let _stops = StopsAtLast(&stop);
        let racing: Vec<_> = laps.iter().map(|lap| scope.spawn(|| race(lap))).collect();
        let some_laps = |count| {
            let before = laps.each_ref().map(|lap| lap.load(Ordering::SeqCst));
            eventually("laps of all", || {
                racing.iter().any(|racing| racing.is_finished())
                    || (laps.iter().zip(before))
                        .all(|(lap, before)| lap.load(Ordering::SeqCst) >= before + count)
            });
        };
        let mut rounds = Rounds::new(40, "refusals under a cap");
        while rounds.another() {
            let before = refused.load(Ordering::SeqCst);
            for cap in [None, Some(5), Some(2), Some(4), None, Some(1)] {
                limit.store(NONE, Ordering::SeqCst);
                let options =
                    cap.map_or(Table::options(), |cap| Table::options().max_in_flight(cap));
                drop(deployment.apply(&options).unwrap());
                let Some(cap) = cap else { continue };
                // What was placed before the change has returned is held by then.
                some_laps(2);
                eventually("no more than the cap", || {
                    held.load(Ordering::SeqCst) <= cap as usize
                });
                limit.store(cap as usize, Ordering::SeqCst);
                some_laps(20);
            }
            rounds.fell(refused.load(Ordering::SeqCst) > before);
        }
    });
    assert_eq!(table.in_flight(), [0; 3]);
}
