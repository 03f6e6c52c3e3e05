//! Taking samples.

use criterion::{Bencher, Criterion};
use headcount_yardstick::Processes;
use std::time::{Duration, Instant};

/// Short measurements, for there are many of them.
pub(crate) fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(30)
}

/// Measures an operation, after something that is done before each sample.
pub(crate) fn timed(
    bencher: &mut Bencher<'_>,
    mut before: impl FnMut(),
    mut operation: impl FnMut(),
) {
    bencher.iter_custom(|times| {
        before();
        let start = Instant::now();
        for _ in 0..times {
            operation();
        }
        start.elapsed()
    });
}

/// Measures what several processes do at once: the time of an operation as each of them sees it, over a
/// slice of fixed length for each sample.
pub(crate) fn per_operation(bencher: &mut Bencher<'_>, processes: &mut Processes, which: usize) {
    const SLICE: Duration = Duration::from_millis(20);
    bencher.iter_custom(|times| {
        let asked = [which as u64, SLICE.as_nanos() as u64];
        let answers = processes.ask(&asked).expect("processes that measure");
        let each = answers.iter().map(|a| a[1] as f64 / a[2] as f64);
        let nanoseconds = each.sum::<f64>() / answers.len() as f64;
        Duration::from_secs_f64(nanoseconds * times as f64 / 1e9)
    });
}
