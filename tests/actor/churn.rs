//! Threads that route and finish until they are told to pause, or killed.

use headcount::{Error, Frontend, Permit, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The threads, and what stops them.
pub(crate) struct Churn {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Permit>>>,
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

    /// Stops the threads and returns the permits that they hold.
    pub(crate) fn pause(self) -> Vec<Permit> {
        self.stop.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        threads
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    }
}

/// Routes with and without tokens, one at a time and several, and keeps up to some dozen permits.
fn churn(frontend: &Frontend, stop: &AtomicBool, seed: u64) -> Vec<Permit> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id());
    let mut random = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % bound
    };
    let mut permits = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let tokens = random(3) as u32 * 100;
        let placed = match random(16) {
            0 => frontend.route_many_with(random(5), &Request::new().tokens(tokens)),
            1..9 => frontend
                .route_with(&Request::new().tokens(tokens))
                .map(|p| vec![p]),
            _ => Ok(Vec::new()),
        };
        match placed {
            Ok(placed) => permits.extend(placed),
            Err(Error::Saturated | Error::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if !permits.is_empty() && (permits.len() > 40 || random(2) == 0) {
            drop(permits.swap_remove(random(permits.len())));
        }
    }
    permits
}
