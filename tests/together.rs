//! Requests that wait together are placed together: all at their turn, or none.

use headcount::{AcquireError, Cap, Engine, Frontend, Permit, Request, RouteError, Table};
use headcount_tests::{eventually, in_flight};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// Engines 0 and 1, with room for four and for one.
fn table() -> Table {
    let engine = |name: &str, cap| Engine::named(name).max_in_flight(cap);
    (Table::options()
        .engine(engine("four", 4))
        .engine(engine("one", 1)))
    .max_waiting(10)
    .memfd()
    .unwrap()
}

fn waiting(table: &Table) -> u32 {
    let classes = table.view().queue.unwrap().classes;
    classes.iter().map(|class| class.waiting).sum()
}

fn comes_to_wait(table: &Table, count: u32) {
    eventually("as many requests in the queue", || waiting(table) == count);
}

fn fill(frontend: &Frontend) -> (Vec<Permit>, Permit) {
    let four = frontend.route_many_with(4, &Request::new().pin(0)).unwrap();
    (four, frontend.route_with(&Request::new().pin(1)).unwrap())
}

#[test]
fn places_are_kept_for_those_who_come_first_and_others_use_the_rest() {
    let table = table();
    let frontend = table.join().unwrap();
    let (mut four, one) = fill(&frontend);
    thread::scope(|scope| {
        let join = || table.join().unwrap();
        let (together, behind, anywhere) = (join(), join(), join());
        let here = Request::new().pin(0);
        let three = scope.spawn(move || together.acquire_many(3, &here, LONG).unwrap());
        comes_to_wait(&table, 1);
        let behind = scope.spawn(move || behind.acquire(&here, LONG).unwrap());
        comes_to_wait(&table, 2);
        let anywhere = scope.spawn(move || anywhere.acquire(&Request::new(), LONG).unwrap());
        comes_to_wait(&table, 3);
        // Two places are not enough, and no other request gets them.
        four.truncate(2);
        thread::sleep(Duration::from_millis(200));
        assert_eq!((in_flight(&table), waiting(&table)), (vec![2, 1], 3));
        let late = table.join().unwrap();
        assert!(late.route_with(&here).is_err(), "places that are kept");
        // The other engine's place goes to the one that may go there.
        drop(one);
        let anywhere = anywhere.join().unwrap();
        assert_eq!((anywhere.engine().index(), waiting(&table)), (1, 2));
        four.truncate(1);
        let three = three.join().unwrap();
        assert_eq!(three.len(), 3);
        assert_eq!((in_flight(&table), waiting(&table)), (vec![4, 1], 1));
        drop(three);
        drop(behind.join().unwrap());
    });
    drop(four);
    assert_eq!((in_flight(&table), waiting(&table)), (vec![0, 0], 0));
}

/// Two need two places, one is free for them, and another is kept for others.
#[test]
fn those_that_have_not_enough_places_sleep() {
    let table = table();
    let frontend = table.join().unwrap();
    let (mut four, one) = fill(&frontend);
    thread::scope(|scope| {
        let join = || table.join().unwrap();
        let (together, anywhere) = (join(), join());
        let here = Request::new().pin(0);
        let three = scope.spawn(move || together.acquire_many(3, &here, LONG).unwrap());
        comes_to_wait(&table, 1);
        let two = scope.spawn(move || anywhere.acquire_many(2, &Request::new(), LONG).unwrap());
        comes_to_wait(&table, 2);
        four.truncate(3);
        drop(one);
        let before = processor_time();
        thread::sleep(Duration::from_millis(500));
        let used = processor_time() - before;
        assert!(used < Duration::from_millis(100), "{used:?} of 500 ms");
        assert_eq!((in_flight(&table), waiting(&table)), (vec![3, 0], 2));
        four.truncate(1);
        drop(three.join().unwrap());
        assert_eq!(two.join().unwrap().len(), 2);
    });
}

/// The processor time of this process.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn they_are_one_request_of_the_queue_and_so_many_of_their_tenant() {
    let table = table();
    let frontend = table.join().unwrap();
    let (four, one) = fill(&frontend);
    let served = AtomicU32::new(0);
    thread::scope(|scope| {
        let order = |request: Request<'static>, count| {
            let (frontend, before, served) = (table.join().unwrap(), waiting(&table), &served);
            let thread = scope.spawn(move || {
                let mut permits = frontend.acquire_many(count, &request, LONG).unwrap();
                assert_eq!(permits.len(), count);
                let served = served.fetch_add(1, Relaxed);
                // One place for those who come next, so that they come one by one.
                permits.pop();
                (served, permits)
            });
            comes_to_wait(&table, before + 1);
            thread
        };
        let tenant = |name| Request::new().pin(0).tenant(name);
        // The first one of `a` costs four turns: so three of `b` come before its second.
        let all = [
            order(tenant("a"), 4),
            order(tenant("a"), 1),
            order(tenant("b"), 1),
            order(tenant("b"), 1),
            order(tenant("b"), 1),
        ];
        drop((four, one));
        let all = all.map(|thread| thread.join().unwrap());
        assert_eq!(all.map(|(served, _)| served), [0, 4, 1, 2, 3]);
    });
}

#[test]
fn more_than_there_is_ever_room_for_are_refused_at_once() {
    let table = table();
    let frontend = table.join().unwrap();
    let refused = frontend.acquire_many(5, &Request::new().pin(0), LONG);
    let too_many = RouteError::Saturated {
        cap: Cap::EngineRequests,
        passes: false,
    };
    assert_eq!(refused.unwrap_err(), AcquireError::Route(too_many));
    let _full = fill(&frontend);
    for wrong in [Request::new().class(4), Request::new().share(0)] {
        let refused = frontend.acquire_many(2, &wrong, LONG).unwrap_err();
        assert!(matches!(refused, AcquireError::Route(_)), "{refused}");
    }
    assert_eq!(
        frontend
            .acquire_many(0, &Request::new(), LONG)
            .unwrap()
            .len(),
        0
    );
    assert_eq!(waiting(&table), 0);
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_task_waits_for_all_and_leaves_with_all() {
    let table = table();
    let frontend = table.join().unwrap();
    let (mut four, _one) = fill(&frontend);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let here = Request::new().pin(0);
    let deadline = Instant::now() + LONG;
    {
        let mut left = pin!(frontend.acquire_many_async(2, &here, deadline));
        assert!(left.as_mut().poll(&mut context).is_pending());
        four.truncate(2);
        // It is woken, and dropped without a look: its places are free again.
        eventually("the places", || woken.0.load(Relaxed) == 1);
        assert_eq!(in_flight(&table)[0], 4);
    }
    assert_eq!((in_flight(&table)[0], waiting(&table)), (2, 0));
    let mut late =
        pin!(frontend.acquire_many_async(3, &here, Instant::now() + Duration::from_millis(50)));
    assert!(late.as_mut().poll(&mut context).is_pending());
    eventually("the end of its time", || woken.0.load(Relaxed) == 2);
    let Poll::Ready(Err(AcquireError::WaitedTooLong { waited })) = late.as_mut().poll(&mut context)
    else {
        panic!("its time is over");
    };
    assert!(waited >= Duration::from_millis(50));
    let mut now = pin!(frontend.acquire_many_async(2, &here, deadline));
    let Poll::Ready(Ok(permits)) = now.as_mut().poll(&mut context) else {
        panic!("there is room");
    };
    assert_eq!((permits.len(), in_flight(&table)[0]), (2, 4));
}
