//! The table itself, used as its users do.

use super::{Failed, Operation};
use headcount::{EngineStats, Frontend, PackedEngineStats, Table};
use std::hint::black_box;

/// Statistics of an engine that has nothing waiting.
pub fn calm() -> EngineStats {
    EngineStats::new().running(20).kv_usage(0.4)
}

/// Statistics of an engine that has a queue and little cache left, which the default policy takes into
/// account.
pub fn pressed() -> EngineStats {
    EngineStats::new().waiting(3).running(20).kv_usage(0.9)
}

/// A table with a snapshot of calm engines.
pub fn fresh_table(engines: usize) -> Result<Table, Failed> {
    let table = Table::options().engines(engines).memfd()?;
    table.publisher()?.publish(&vec![calm(); engines])?;
    Ok(table)
}

/// One request after the other.
pub fn route_and_finish(frontend: Frontend) -> Operation<'static> {
    Box::new(move |times| {
        for _ in 0..times {
            drop(black_box(frontend.route()?));
        }
        Ok(())
    })
}

/// One consistent read of all statistics after the other.
pub fn read_statistics(table: &Table, engines: usize) -> Operation<'static> {
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
