//! Workloads of the table itself, through its public interface.

use super::{MeasureError, Workload};
use headcount::{EngineStats, Frontend, PackedEngineStats, Table};
use std::hint::black_box;

/// Returns the statistics of an engine that has nothing waiting.
pub fn calm() -> EngineStats {
    EngineStats::new().running(20).kv_usage(0.4)
}

/// Returns the statistics of an engine that has a queue and little cache left. The default policy counts these in.
pub fn pressed() -> EngineStats {
    EngineStats::new().waiting(3).running(20).kv_usage(0.9)
}

/// Creates a table with a snapshot of [calm] engines.
///
/// # Errors
///
/// A sentence, if the system refuses memory.
pub fn fresh_table(engines: usize) -> Result<Table, MeasureError> {
    let table = Table::options().engines(engines).memfd()?;
    table.publisher()?.publish(&vec![calm(); engines])?;
    Ok(table)
}

/// Returns a workload that routes and finishes one request after the other.
pub fn route_and_finish(frontend: Frontend) -> Workload<'static> {
    Box::new(move |times| {
        for _ in 0..times {
            drop(black_box(frontend.route()?));
        }
        Ok(())
    })
}

/// Returns a workload that reads all statistics consistently, again and again.
pub fn read_statistics(table: &Table, engines: usize) -> Workload<'static> {
    let table = table.clone();
    let mut into = vec![PackedEngineStats::default(); engines];
    Box::new(move |times| {
        for _ in 0..times {
            // A thin pointer, as for the yardstick; a slice would pass through memory.
            let into: &mut Vec<_> = black_box(&mut into);
            black_box(table.read_stats(into).is_some());
        }
        Ok(())
    })
}
