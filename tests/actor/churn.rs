//! Threads that route, change tokens and finish until they are told to pause, or killed. If the table has a queue, they
//! also wait for places.

use headcount::{AcquireError, Frontend, Permit, Request, RouteError};
use headcount_tests::WorkDone;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The work of churning threads, while it is added up.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work(pub(crate) WorkDone);

impl Work {
    pub(crate) fn and(self, other: Self) -> Self {
        Self(WorkDone {
            operations: self.0.operations + other.0.operations,
            longest: self.0.longest.max(other.0.longest),
        })
    }

    /// Does one operation, and notes how long it took.
    fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = operation();
        self.0.operations += 1;
        self.0.longest = self.0.longest.max(start.elapsed().as_nanos() as u64);
        result
    }
}

/// The threads, and what stops them.
pub(crate) struct Churn {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Vec<Permit>, Work)>>,
}

impl Churn {
    pub(crate) fn start(frontend: &Frontend, threads: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..threads)
            .map(|number| {
                let (stop, frontend) = (Arc::clone(&stop), frontend.clone());
                thread::spawn(move || churn(&frontend, &stop, number + 1))
            })
            .collect();
        Self { stop, threads }
    }

    /// Stops the threads; returns the permits that they hold, and what they have done.
    pub(crate) fn pause(self) -> (Vec<Permit>, Work) {
        self.stop.store(true, Ordering::Relaxed);
        let (mut permits, mut work) = (Vec::new(), Work::default());
        for thread in self.threads {
            let (held, done) = thread.join().unwrap_or_default();
            permits.extend(held);
            work = work.and(done);
        }
        (permits, work)
    }
}

/// Routes with and without tokens, one at a time and several, keeps up to some dozen permits, and changes their tokens.
fn churn(frontend: &Frontend, stop: &AtomicBool, seed: u64) -> (Vec<Permit>, Work) {
    let mut work = Work::default();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id());
    let mut random = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % bound
    };
    let has_queue = frontend.table().view().queue.is_some();
    let tenants = ["a", "b", "c"];
    let mut permits = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let tokens = random(3) as u32 * 100;
        let request = Request::new().tokens(tokens);
        let count = match random(16) {
            0 => random(5),
            1..9 => 1,
            _ => 0,
        };
        if has_queue && random(4) == 0 {
            let request = request.class(random(4) as u8).tenant(tenants[random(3)]);
            let excluded = frontend.table().engine_at(0);
            let request = match &excluded {
                Some(engine) if random(3) == 0 => request.exclude(std::slice::from_ref(engine)),
                _ => request,
            };
            // Some give up before they have a place, and some are refused.
            let timeout = Duration::from_micros(random(3000) as u64);
            match work.time(|| frontend.acquire(&request, timeout)) {
                Ok(permit) => permits.push(permit),
                Err(
                    AcquireError::WaitedTooLong { .. }
                    | AcquireError::QueueFull { .. }
                    | AcquireError::Route(RouteError::Unavailable(_)),
                ) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let placed = work.time(|| match count {
            1 => frontend.route_with(&request).map(|permit| vec![permit]),
            _ => frontend.route_many_with(count, &request),
        });
        match placed {
            Ok(placed) => permits.extend(placed),
            Err(RouteError::Saturated { .. } | RouteError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
        if !permits.is_empty() && random(4) == 0 {
            let (which, tokens) = (random(permits.len()), random(4) as u32 * 50);
            let permit: &mut Permit = &mut permits[which];
            match work.time(|| permit.set_tokens(tokens)) {
                Ok(()) | Err(RouteError::Saturated { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        if !permits.is_empty() && (permits.len() > 40 || random(2) == 0) {
            let permit = permits.swap_remove(random(permits.len()));
            work.time(|| drop(permit));
        }
    }
    (permits, work)
}
