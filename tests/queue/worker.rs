//! A process that acquires, holds and finishes, by two threads that block and by one that polls futures.

use crate::delays::note_delays;
use crate::record::{Record, What};
use headcount::{Acquire, AcquireError, Frontend, Permit, Request, Table};
use headcount_tests::Random;
use std::future::Future;
use std::io::Read;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a request waits that is to get a place.
const LONG: Duration = Duration::from_secs(30);

/// How one request goes.
struct Plan {
    class: u8,
    timeout: Duration,
    gives_up_after: Option<Duration>,
    held_for: Duration,
}

impl Plan {
    fn new(random: &mut Random) -> Self {
        let mut below =
            |milliseconds: u64| Duration::from_micros(random.below(1_000 * milliseconds));
        let (short, soon, held_for) = (below(40), below(60), below(6));
        let timeout = match random.below(12) {
            0 => Duration::ZERO,
            1 | 2 => short,
            _ => LONG,
        };
        Self {
            class: u8::from(random.below(10) > 0),
            timeout,
            gives_up_after: (random.below(8) == 0).then_some(soon),
            held_for: held_for + Duration::from_micros(500),
        }
    }
}

/// Works until the standard input is closed.
pub(crate) fn work(table: &Path, record: &Path, seed: u64) {
    let frontend = Table::open(table).and_then(|table| table.join());
    let frontend = frontend.expect("joins");
    let record = Record::create(record);
    let stop = AtomicBool::new(false);
    let go_on = || !stop.load(Ordering::SeqCst);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (frontend, record, go_on) = (&frontend, &record, &go_on);
            let acquire = match thread {
                0 | 1 => by_blocking,
                _ => by_polling,
            };
            scope.spawn(move || {
                let mut random = Random::from_seed(seed ^ (thread as u64) << 60);
                while go_on() {
                    one(frontend, record, thread, &Plan::new(&mut random), acquire);
                }
            });
        }
        let (record, go_on) = (&record, &go_on);
        scope.spawn(move || note_delays(go_on, |delay| record.note(3, What::Late(delay))));
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::SeqCst);
    });
}

/// A way to acquire. `None`: the future was dropped.
type Way = fn(&Frontend, &Plan) -> Option<Result<Permit, AcquireError>>;

fn one(frontend: &Frontend, record: &Record, thread: usize, plan: &Plan, acquire: Way) {
    record.note(thread, What::Begins(plan.class));
    match acquire(frontend, plan) {
        Some(Ok(permit)) => {
            record.note(thread, What::Holds);
            thread::sleep(plan.held_for);
            record.note(thread, What::Finishes);
            drop(permit);
        }
        None | Some(Err(AcquireError::WaitedTooLong { .. } | AcquireError::Cancelled)) => {
            record.note(thread, What::GivesUp);
            thread::sleep(Duration::from_millis(1));
        }
        Some(Err(_)) => record.note(thread, What::Fails),
    }
}

fn by_blocking(frontend: &Frontend, plan: &Plan) -> Option<Result<Permit, AcquireError>> {
    let request = Request::new().class(plan.class);
    let start = Instant::now();
    let go_on = || {
        plan.gives_up_after
            .is_none_or(|after| start.elapsed() < after)
    };
    Some(frontend.acquire_while(&request, plan.timeout, go_on))
}

fn by_polling(frontend: &Frontend, plan: &Plan) -> Option<Result<Permit, AcquireError>> {
    let request = Request::new().class(plan.class);
    let start = Instant::now();
    let mut future = frontend.acquire_async(&request, start + plan.timeout);
    let dropped_at = start + plan.gives_up_after.unwrap_or(2 * LONG);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(outcome) = Pin::<&mut Acquire>::new(&mut future).poll(&mut context) {
            return Some(outcome);
        }
        let left = dropped_at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
