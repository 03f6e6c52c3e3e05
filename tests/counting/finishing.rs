//! C3: a permit finishes once.

use headcount::Table;
use headcount_tests::TestTable;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

#[test]
fn c3_a_permit_finishes_once_wherever_it_is_dropped() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(40).unwrap();
    thread::scope(|scope| {
        for permit in permits {
            scope.spawn(move || drop(permit));
        }
    });
    assert_eq!(table.in_flight(), [0; 2]);
    // Now that lanes have finished what other lanes admitted, the frontend still holds nothing.
    assert_eq!(table.view().frontends[0].in_flight, 0);
    drop(frontend);
    assert_eq!(table.view().frontends, []);
    assert_eq!(table.reap().unwrap().frontends, 0);
}

#[test]
fn c3_a_panic_and_a_cancelled_future_finish_their_permits() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _permit = frontend.route().unwrap();
        assert_eq!(table.in_flight(), [0; 2], "this is meant to fail");
    }));
    assert!(panicked.is_err());
    assert_eq!(table.in_flight(), [0; 2]);

    let permit = frontend.route().unwrap();
    let request = async move {
        std::future::pending::<()>().await;
        drop(permit);
    };
    assert_eq!(table.in_flight().iter().sum::<u32>(), 1);
    drop(request);
    assert_eq!(table.in_flight(), [0; 2]);
}

#[test]
fn c3_a_permit_outlives_its_frontend_and_its_table() {
    let table = TestTable::with_engines(1);
    let permit = Table::open(table.path())
        .unwrap()
        .join()
        .unwrap()
        .route()
        .unwrap();
    assert_eq!(
        table.reap().unwrap().frontends,
        0,
        "its frontend is not dead"
    );
    assert_eq!(table.in_flight(), [1]);
    drop(permit);
    assert_eq!(table.in_flight(), [0]);
    assert_eq!(table.view().frontends, []);
}
