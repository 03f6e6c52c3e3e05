//! Workloads of the table itself, through its public interface.

use super::deployment::Wish;
use super::in_flight::InFlight;
use super::{MeasureError, Workload};
use headcount::{Frontend, PackedEngineStats, Table};
use std::hint::black_box;

/// Returns a workload that routes and finishes one request after the other.
pub fn route_and_finish(frontend: Frontend) -> Workload<'static> {
    Box::new(move |times| {
        for _ in 0..times {
            drop(black_box(frontend.route()?));
        }
        Ok(())
    })
}

/// Returns a workload that keeps so many requests in flight: it routes one, and finishes one at random.
///
/// # Errors
///
/// A sentence, if the table has no room for them.
pub fn route_and_finish_another(
    frontend: Frontend,
    in_flight: usize,
) -> Result<Workload<'static>, MeasureError> {
    let mut requests = InFlight::new(frontend.route_many(in_flight)?);
    Ok(Box::new(move |times| {
        for _ in 0..times {
            drop(requests.replace(black_box(frontend.route()?)));
        }
        Ok(())
    }))
}

/// Returns a workload like [`route_and_finish_another`] whose requests have tokens, exclude two engines and prefer
/// one. The engines differ from request to request.
///
/// # Errors
///
/// A sentence, if the table has no room for them.
pub fn route_shaped_and_finish_another(
    frontend: Frontend,
    in_flight: usize,
) -> Result<Workload<'static>, MeasureError> {
    let table = frontend.table();
    let wishes = Wish::list(table, table.view().engines.len())?;
    let mut requests = Vec::new();
    for wish in wishes.iter().cycle().take(in_flight) {
        requests.push(frontend.route_with(&wish.request())?);
    }
    let mut requests = InFlight::new(requests);
    let mut next = 0;
    Ok(Box::new(move |times| {
        for _ in 0..times {
            let wish = &wishes[next];
            next = if next + 1 < wishes.len() { next + 1 } else { 0 };
            drop(requests.replace(black_box(frontend.route_with(&wish.request())?)));
        }
        Ok(())
    }))
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
