//! The engines, statistics and requests that the table is measured with.

use super::MeasureError;
use headcount::{Engine, EngineId, EngineStats, Request, Table};

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

/// Engines of several generations: the weights of eight, and of each eight more.
const WEIGHTS: [f32; 8] = [1.0, 2.0, 1.0, 1.5, 3.0, 1.0, 2.0, 1.5];
/// The requests in flight for each engine.
const IN_FLIGHT: usize = 20;

/// Creates a table of engines whose weights differ and which have caps, with a snapshot of
/// [`pressed_statistics`].
///
/// # Errors
///
/// A sentence, if the system refuses memory.
pub fn pressed_table(engines: usize) -> Result<Table, MeasureError> {
    let mut options = Table::options();
    for (number, weight) in (0..engines).zip(WEIGHTS.into_iter().cycle()) {
        // What the engine's memory has room for: more than it gets.
        let requests = (32.0 * weight) as u32;
        let engine = Engine::named(number.to_string()).weight(weight);
        options = options.engine(
            engine
                .max_in_flight(requests)
                .max_tokens(requests * MOST_TOKENS),
        );
    }
    let table = options.memfd()?;
    table.publisher()?.publish(&pressed_statistics(engines))?;
    Ok(table)
}

/// Returns the statistics of engines of which most have a queue and little cache left, each in another measure.
pub fn pressed_statistics(engines: usize) -> Vec<EngineStats> {
    let of_engine = |number: usize| {
        let waiting = number * 5 % 7;
        let kv_usage = 0.35 + 0.05 * (number * 7 % 13) as f32;
        let running = IN_FLIGHT - waiting;
        EngineStats::new()
            .waiting(waiting as u32)
            .running(running as u32)
            .kv_usage(kv_usage)
    };
    (0..engines).map(of_engine).collect()
}

/// Returns how many requests are in flight on a [`pressed_table`] while it is measured: so many that every engine
/// gets some.
pub fn pressed_in_flight(engines: usize) -> usize {
    IN_FLIGHT * engines
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    tokens: u32,
    excluded: [EngineId; 2],
    preferred: EngineId,
}

const MOST_TOKENS: u32 = 1_800;

impl Wish {
    /// Returns the wishes of many requests to a table. Half of them prefer one of a few engines.
    pub(crate) fn list(table: &Table, engines: usize) -> Result<Vec<Self>, MeasureError> {
        const COUNT: usize = 64;
        let engine = |number: usize| {
            let id = table.engine_at(number % engines);
            id.ok_or_else(|| MeasureError(format!("the table has no engine {number}")))
        };
        let wish = |number: usize| {
            let popular = engines.div_ceil(8);
            Ok(Self {
                tokens: 200 + (number * 331) as u32 % (MOST_TOKENS - 200),
                excluded: [engine(number * 3)?, engine(number * 3 + 1)?],
                preferred: engine(match number % 2 {
                    0 => number / 2 % popular,
                    _ => number * 5,
                })?,
            })
        };
        (0..COUNT).map(wish).collect()
    }

    /// Returns the request.
    #[inline]
    pub(crate) fn request(&self) -> Request<'_> {
        /// How many requests more than on the least loaded engine a warm cache is worth.
        const SLACK: f64 = 8.0;
        Request::new()
            .tokens(self.tokens)
            .exclude(&self.excluded)
            .prefer(self.preferred, SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount::Permit;

    const ENGINES: [usize; 3] = [8, 64, 256];

    #[test]
    fn every_engine_under_pressure_gets_requests_and_none_reaches_its_cap() {
        for engines in ENGINES {
            let table = pressed_table(engines).unwrap();
            let frontend = table.join().unwrap();
            let permits = frontend.route_many(pressed_in_flight(engines)).unwrap();
            let view = table.view();
            let loads = || view.engines.iter().map(|engine| engine.in_flight);
            assert_eq!(loads().sum::<u32>() as usize, permits.len());
            assert!(
                loads().all(|load| load > 0),
                "{:?}",
                loads().collect::<Vec<_>>()
            );
            for engine in &view.engines {
                let cap = engine.max_in_flight.unwrap();
                assert!(engine.in_flight < cap, "{engine:?}");
            }
            // The statistics matter: by the weights alone the engines would get other shares.
            let by_weight = |weight: f32| weight * loads().sum::<u32>() as f32 / engines as f32;
            let differs = (view.engines.iter())
                .filter(|e| (e.in_flight as f32 - by_weight(e.weight) / 1.625).abs() > 3.0);
            assert!(differs.count() > engines / 4);
        }
    }

    #[test]
    fn some_requests_go_where_they_prefer_and_none_where_it_is_excluded() {
        for engines in ENGINES {
            let table = pressed_table(engines).unwrap();
            let frontend = table.join().unwrap();
            let wishes = Wish::list(&table, engines).unwrap();
            let (mut preferred, mut others) = (0, 0);
            let mut permits: Vec<Permit> = Vec::new();
            for wish in wishes.iter().cycle().take(pressed_in_flight(engines)) {
                let permit = frontend.route_with(&wish.request()).unwrap();
                assert!(!wish.excluded.contains(&permit.engine()));
                assert_eq!(permit.tokens(), wish.tokens);
                match permit.engine() == wish.preferred {
                    true => preferred += 1,
                    false => others += 1,
                }
                permits.push(permit);
            }
            assert!(
                preferred > permits.len() / 8 && others > permits.len() / 8,
                "{preferred} {others}"
            );
            let view = table.view();
            assert!(view.engines.iter().all(|engine| engine.in_flight > 0));
        }
    }
}
