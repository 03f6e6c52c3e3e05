use headcount::{EngineStats, Table};
use headcount_yardstick::{MeasureError, Processes};
use std::time::{Duration, Instant};

/// A process that publishes these statistics so many times a second, without a pause if that is
/// `u64::MAX`, until this is dropped.
pub fn publishing(
    table: &Table,
    stats: Vec<EngineStats>,
    rate: u64,
) -> Result<Processes, MeasureError> {
    Processes::start_beside(|_| {
        let mut publisher = table.publisher()?;
        let stats = stats.clone();
        publisher.publish(&stats)?;
        let period = Duration::from_nanos(1_000_000_000 / rate);
        // The child's other thread waits for questions, or for the end.
        std::thread::spawn(move || -> headcount::Result<()> {
            let mut next = Instant::now();
            loop {
                publisher.publish(&stats)?;
                next += period;
                let pause = next.saturating_duration_since(Instant::now());
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
        });
        Ok(|_: &[u64]| -> Result<Vec<u64>, MeasureError> { Ok(Vec::new()) })
    })
}
