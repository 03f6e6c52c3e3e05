//! Requests in flight that finish at random, as requests of different lengths do.

use std::mem;

/// The requests that a workload keeps in flight.
pub(crate) struct InFlight<T> {
    requests: Vec<T>,
    random: fastrand::Rng,
}

impl<T> InFlight<T> {
    /// Takes the requests, of which there must be one.
    pub(crate) fn new(requests: Vec<T>) -> Self {
        Self {
            requests,
            random: fastrand::Rng::with_seed(1),
        }
    }

    /// Adds a request, and returns the one in whose place it is.
    #[inline]
    pub(crate) fn replace(&mut self, request: T) -> T {
        let place = self.random.usize(..self.requests.len());
        mem::replace(&mut self.requests[place], request)
    }
}
