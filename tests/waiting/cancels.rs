//! Q5: requests that give up while a place comes to them.

use crate::{AT_ONCE, LONG, is_empty, median, places, taken};
use headcount::{Acquire, AcquireError, Frontend, Permit, Request};
use headcount_tests::{
    Actor, Ask, Random, Rounds, Task, TestTable, Waited, eventually, monotonic_ns, waiting,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Notes that it was woken.
#[derive(Default)]
pub(crate) struct Noted(AtomicBool);

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Noted {
    pub(crate) fn is_woken(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A future that waits, and what its waker has noted.
pub(crate) fn waiting_future(frontend: &Frontend, request: &Request<'_>) -> (Acquire, Arc<Noted>) {
    let mut future = frontend.acquire_async(request, Instant::now() + LONG);
    let noted = Arc::<Noted>::default();
    let polled = poll(&mut future, &noted);
    assert!(polled.is_none(), "it waits: {polled:?}");
    (future, noted)
}

/// Polls a future once.
pub(crate) fn poll(
    future: &mut Acquire,
    noted: &Arc<Noted>,
) -> Option<Result<Permit, AcquireError>> {
    let waker = Waker::from(Arc::clone(noted));
    match Pin::new(future).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

#[test]
fn q5_a_future_that_is_dropped_before_its_turn_leaves_the_queue() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let (future, noted) = waiting_future(&own, &Request::new());
    let mut next = Actor::joined(table.path());
    next.begins_to_wait(&table, Ask::new());
    assert_eq!(waiting(&table), 2);
    drop(future);
    assert_eq!(waiting(&table), 1);
    drop(held);
    assert!(next.answer::<Waited>().outcome.is_ok());
    assert!(!noted.is_woken());
    next.finish_one();
    is_empty(&table);
}

#[test]
fn q5_a_place_that_a_dropped_future_had_got_goes_on_at_once() {
    let times = (0..20).map(|_| {
        let table = TestTable::new(&places(1));
        let (own, held) = taken(&table, 1);
        let (future, noted) = waiting_future(&own, &Request::new());
        let mut next = Actor::joined(table.path());
        next.begins_to_wait(&table, Ask::new());
        drop(held);
        eventually("the future has its place", || noted.is_woken());
        assert_eq!((table.in_flight(), waiting(&table)), (vec![1], 1));
        let dropped = monotonic_ns();
        drop(future);
        let next: Waited = next.answer();
        assert!(next.outcome.is_ok());
        next.after(dropped)
    });
    let median = median(times.collect());
    println!("{median:?}");
    assert!(median < AT_ONCE, "{median:?}");
}

#[test]
fn q5_a_place_that_is_granted_while_the_future_is_dropped_is_used_by_the_next_or_stays_free() {
    let mut random = Random::seeded();
    let table = TestTable::new(&places(1));
    let own = table.join().unwrap();
    let other = table.join().unwrap();
    let mut next = Actor::joined(table.path());
    let mut rounds = Rounds::new(
        300,
        "futures with a place, and futures without one, were dropped",
    );
    let (mut with, mut without) = (0, 0);
    while rounds.another() {
        let held = other.route().expect("the place is free");
        let (future, noted) = waiting_future(&own, &Request::new());
        let is_followed = random.below(4) == 0;
        if is_followed {
            next.begins_to_wait(&table, Ask::new());
        }
        let spin = |nanoseconds: u64| {
            let end = monotonic_ns() + nanoseconds;
            while monotonic_ns() < end {}
        };
        let (begin, lead) = (monotonic_ns() + 100_000, random.below(250_000));
        thread::scope(|scope| {
            scope.spawn(move || {
                spin(begin.saturating_sub(monotonic_ns()));
                drop(held);
            });
            spin((begin + lead).saturating_sub(monotonic_ns()));
            match noted.is_woken() {
                true => with += 1,
                false => without += 1,
            }
            drop(future);
        });
        rounds.fell(with > 0 && without > 0);
        if is_followed {
            assert!(next.answer::<Waited>().outcome.is_ok());
            next.finish_one();
        }
        assert_eq!((table.in_flight(), waiting(&table)), (vec![0], 0));
    }
    println!("dropped with a place {with}, without {without}");
    is_empty(&table);
}

#[test]
fn q5_a_deadline_that_races_with_a_place_ends_in_one_of_the_two() {
    let mut random = Random::seeded();
    let table = TestTable::new(&places(1));
    let other = table.join().unwrap();
    let mut waiter = Actor::joined(table.path());
    let own = table.join().unwrap();
    const TIMEOUT: u64 = 3;
    let mut rounds = Rounds::new(300, "both a place and a deadline came first");
    let (mut placed, mut late) = (0, 0);
    while rounds.another() {
        let held = other.route().expect("the place is free");
        let at_end = Duration::from_millis(TIMEOUT);
        let finish_at = |since: Instant| {
            let lead = Duration::from_micros(random.below(600));
            let end = since + at_end + Duration::from_micros(300) - lead;
            move || {
                thread::sleep(end.saturating_duration_since(Instant::now()) / 2);
                while Instant::now() < end {}
                drop(held);
            }
        };
        // By a thread of this process, and by another process.
        let outcome = if (placed + late) % 2 == 0 {
            let finish = thread::spawn(finish_at(Instant::now()));
            let acquired = own.acquire(&Request::new(), at_end);
            finish.join().unwrap();
            if acquired.is_ok() {
                assert_eq!(table.in_flight(), [1]);
            }
            acquired.map(drop).is_ok()
        } else {
            let ask = Ask::new();
            waiter.tell(&Task::Acquire {
                ask,
                milliseconds: TIMEOUT,
            });
            finish_at(Instant::now())();
            let waited: Waited = waiter.answer();
            assert!(waited.outcome.is_ok() || waited.is_too_long(), "{waited:?}");
            if waited.outcome.is_ok() {
                assert_eq!(table.in_flight(), [1]);
                waiter.finish_one();
            }
            waited.outcome.is_ok()
        };
        match outcome {
            true => placed += 1,
            false => late += 1,
        }
        rounds.fell(placed > 0 && late > 0);
        assert_eq!((table.in_flight(), waiting(&table)), (vec![0], 0));
    }
    println!("placed {placed}, too late {late}");
    assert!(
        placed > 20 && late > 20,
        "{placed} and {late}: near the deadline"
    );
    is_empty(&table);
}

#[test]
fn q5_go_on_ends_the_wait_and_nothing_stays_counted() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let asked = AtomicU32::new(0);
    let start = Instant::now();
    let ended = own.acquire_while(&Request::new(), LONG, || {
        assert_eq!(waiting(&table), 1);
        asked.fetch_add(1, Ordering::SeqCst) < 3
    });
    assert_eq!(ended.unwrap_err(), AcquireError::Cancelled);
    let took = start.elapsed();
    assert!(
        asked.into_inner() == 4 && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert_eq!(waiting(&table), 0);
    drop(held);
    is_empty(&table);
}

/// A thread that does not sleep on the table's word is asked, too.
#[test]
fn q5_each_thread_is_asked_whether_it_goes_on() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let stop: [AtomicBool; 3] = Default::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (stop.iter().zip(1..))
            .map(|(stop, count)| {
                let own = &own;
                let go_on = move || !stop.load(Ordering::SeqCst);
                let wait = move || own.acquire_while(&Request::new(), LONG, go_on);
                let thread = scope.spawn(wait);
                eventually("one more waits", || waiting(&table) == count);
                thread
            })
            .collect();
        // First the one that leads, so that another one has to.
        for (stop, left) in stop.iter().zip([2, 1]) {
            stop.store(true, Ordering::SeqCst);
            eventually("one less waits", || waiting(&table) == left);
        }
        let freed = Instant::now();
        drop(held);
        let mut ended = threads.into_iter().map(|thread| thread.join().unwrap());
        let mut next = || ended.next().unwrap();
        assert_eq!(next().unwrap_err(), AcquireError::Cancelled);
        assert_eq!(next().unwrap_err(), AcquireError::Cancelled);
        drop(next().expect("the last one gets the place"));
        println!("{:?}", freed.elapsed());
    });
    is_empty(&table);
}

/// A caller that takes long to say whether it goes on holds up no other thread of its process.
#[test]
fn q5_a_thread_that_is_asked_for_long_leaves_the_others_served() {
    const ASKED: Duration = Duration::from_secs(2);
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let is_asked = AtomicBool::new(false);
    let last = Request::new().class(1);
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            own.acquire_while(&last, LONG, || {
                is_asked.store(true, Ordering::SeqCst);
                thread::sleep(ASKED);
                true
            })
        });
        eventually("it waits", || waiting(&table) == 1);
        let other = scope.spawn(|| own.acquire(&Request::new(), LONG));
        eventually("both wait", || waiting(&table) == 2);
        is_asked.store(false, Ordering::SeqCst);
        eventually("it is asked", || is_asked.load(Ordering::SeqCst));
        let freed = Instant::now();
        drop(held);
        drop(other.join().unwrap().expect("the place is for this one"));
        let took = freed.elapsed();
        println!("{took:?}");
        assert!(took < ASKED / 4, "{took:?}");
        drop(asked.join().unwrap().expect("and then for that one"));
    });
    is_empty(&table);
}

/// The first one in a process leads: it sleeps on the table's word for all. Each time it leaves without a place, the next
/// one has to do so at once.
#[test]
fn q5_a_thread_that_gives_up_leaves_none_asleep() {
    let mut times = Vec::new();
    for _ in 0..11 {
        let table = TestTable::new(&places(1));
        let (own, held) = taken(&table, 1);
        let time = thread::scope(|scope| {
            let own = &own;
            let begin = |timeout: Duration| {
                let before = waiting(&table);
                let wait = move || Waited::by(|| own.acquire(&Request::new(), timeout));
                let thread = scope.spawn(wait);
                eventually("one more waits", || waiting(&table) > before);
                thread
            };
            let (first, second) = (begin(Duration::from_millis(300)), begin(LONG));
            let (first, _) = first.join().unwrap();
            assert!(first.is_too_long(), "{first:?}");
            // It sleeps by now, unless it was not woken and sleeps on another word.
            thread::sleep(Duration::from_millis(3));
            let freed = monotonic_ns();
            drop(held);
            let (second, permit) = second.join().unwrap();
            assert!(permit.is_some(), "{second:?}");
            second.after(freed)
        });
        times.push(time);
        is_empty(&table);
    }
    let median = median(times);
    println!("{median:?}");
    assert!(median < AT_ONCE, "{median:?}");
}

#[test]
fn q5_a_signal_has_the_thread_asked_at_once() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: a structure of integers, of which zeros are a value: no flags, so that calls are interrupted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: a handler that does nothing, for a signal that no other test uses.
    unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    let table = TestTable::new(&places(1));
    let (own, _held) = taken(&table, 1);
    let mut random = Random::seeded();
    let mut times = Vec::new();
    for _ in 0..15 {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let (own, stop) = (&own, &stop);
            let waits = scope.spawn(move || {
                // SAFETY: this thread's own number.
                sender.send(unsafe { libc::pthread_self() }).unwrap();
                let go_on = || !stop.load(Ordering::SeqCst);
                let ended = own.acquire_while(&Request::new(), LONG, go_on);
                (ended, monotonic_ns())
            });
            let thread = receiver.recv().unwrap();
            eventually("it waits", || waiting(&table) == 1);
            random.pause(50_000);
            stop.store(true, Ordering::SeqCst);
            let sent = monotonic_ns();
            // SAFETY: the thread was not joined yet.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            let (ended, end) = waits.join().unwrap();
            assert_eq!(ended.unwrap_err(), AcquireError::Cancelled);
            times.push(Duration::from_nanos(end - sent));
        });
    }
    let median = median(times);
    println!("{median:?}");
    assert!(median < AT_ONCE, "{median:?}");
}
