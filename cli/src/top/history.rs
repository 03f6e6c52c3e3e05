//! The last minute.

use crate::observed::Observed;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// How far back samples are kept.
pub(crate) const SPAN: Duration = Duration::from_secs(60);
/// Samples that are closer together than this are merged.
const STEP: Duration = Duration::from_millis(400);
/// Rates are over this time, or over as much of it as there is.
const RATE_SPAN: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    spread: Option<f64>,
    /// Refused requests, by reason.
    refused: [(&'static str, u64); 5],
    /// By the engine's name; a slot may have another engine in a minute.
    engines: HashMap<String, Counted>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    /// The most in the samples that were merged.
    in_flight: u32,
    admitted: u64,
    finished: u64,
}

/// Requests per second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) admitted: f64,
    pub(crate) finished: f64,
}

/// Samples of the last minute, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
}

impl History {
    pub(crate) fn note(&mut self, at: Instant, observed: &Observed) {
        let before = self.take_last_if_close();
        let (mut spread, mut most) = (observed.spread(), HashMap::new());
        if let Some(before) = before {
            spread = [spread, before.spread]
                .into_iter()
                .flatten()
                .reduce(f64::max);
            most = before.engines;
        }
        let engines = observed.view.engines.iter().map(|engine| {
            let (name, most) = match most.remove_entry(&engine.name) {
                Some((name, before)) => (name, before.in_flight),
                None => (engine.name.clone(), 0),
            };
            let counted = Counted {
                in_flight: engine.in_flight.max(most),
                admitted: engine.admitted_total,
                finished: engine.finished_total,
            };
            (name, counted)
        });
        self.samples.push_back(Sample {
            at,
            spread,
            refused: observed.view.refusals_total.by_reason(),
            engines: engines.collect(),
        });
        while let Some(oldest) = self.samples.front()
            && at.duration_since(oldest.at) > SPAN
        {
            self.samples.pop_front();
        }
    }

    /// Takes the last sample if the next one is merged with it.
    fn take_last_if_close(&mut self) -> Option<Sample> {
        let last = self.samples.len().checked_sub(1)?;
        let before = self.samples.get(last.checked_sub(1)?)?;
        let is_close = self.samples[last].at.duration_since(before.at) < STEP;
        is_close.then(|| self.samples.pop_back()).flatten()
    }

    /// Returns the widest spread of the last minute.
    pub(crate) fn widest_spread(&self) -> Option<f64> {
        let spreads = self.samples.iter().filter_map(|sample| sample.spread);
        spreads.reduce(f64::max)
    }

    /// Returns how many requests an engine was given and finished per second. `None` until there are two samples
    /// of it.
    pub(crate) fn rates(&self, engine: &str) -> Option<Rates> {
        let last = self.samples.back()?;
        let new = last.engines.get(engine)?;
        let (at, old) = (self.samples.iter())
            .filter(|sample| last.at.duration_since(sample.at) <= RATE_SPAN)
            .find_map(|sample| Some((sample.at, sample.engines.get(engine)?)))?;
        let seconds = last.at.duration_since(at).as_secs_f64();
        let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
        (seconds > 0.0).then(|| Rates {
            admitted: rate(new.admitted, old.admitted),
            finished: rate(new.finished, old.finished),
        })
    }

    /// Returns how many requests were refused per second, and the commonest reason. `None` if none was.
    pub(crate) fn refused(&self) -> Option<(f64, &'static str)> {
        let last = self.samples.back()?;
        let is_recent = |s: &&Sample| last.at.duration_since(s.at) <= RATE_SPAN;
        let old = self.samples.iter().find(is_recent)?;
        let pairs = last.refused.iter().zip(&old.refused);
        let recent = pairs.map(|((reason, new), (_, old))| (new.saturating_sub(*old), *reason));
        let recent: Vec<_> = recent.collect();
        let count = (recent.iter()).fold(0, |sum: u64, (count, _)| sum.saturating_add(*count));
        let seconds = last.at.duration_since(old.at).as_secs_f64();
        let (_, reason) = recent.into_iter().max()?;
        (count > 0 && seconds > 0.0).then(|| (count as f64 / seconds, reason))
    }

    /// Returns the last minute of an engine's count in `columns` equal parts: the most of each. A part without a
    /// sample has the figure of the part before.
    pub(crate) fn minute(&self, engine: &str, columns: usize) -> Vec<Option<f64>> {
        let mut most: Vec<Option<f64>> = vec![None; columns];
        let Some(last) = self.samples.back() else {
            return most;
        };
        for sample in &self.samples {
            let ago = last.at.duration_since(sample.at).as_secs_f64() / SPAN.as_secs_f64();
            let back = (ago * columns as f64) as usize;
            if let (Some(column), Some(counted)) = (
                columns.checked_sub(back + 1).and_then(|n| most.get_mut(n)),
                sample.engines.get(engine),
            ) {
                let count = f64::from(counted.in_flight);
                *column = Some(column.map_or(count, |most| most.max(count)));
            }
        }
        let mut before = None;
        for column in &mut most {
            *column = column.or(before);
            before = *column;
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount::Table;

    /// A minute and a half of ten samples a second, in which engine "0" is given 50 requests a second
    /// and finishes 40.
    fn history() -> History {
        let table = Table::options().engines(2).memfd().unwrap();
        let mut observed = Observed::of(&table, Duration::from_secs(1));
        let (start, mut history) = (Instant::now(), History::default());
        for n in 0..900_u64 {
            let engine = &mut observed.view.engines[0];
            (engine.admitted_total, engine.finished_total) = (n * 5, n * 4);
            engine.in_flight = n as u32;
            history.note(start + Duration::from_millis(n * 100), &observed);
        }
        history
    }

    #[test]
    fn rates_are_of_the_last_seconds_and_per_second() {
        let rates = history().rates("0").unwrap();
        assert!((rates.admitted - 50.0).abs() < 0.1, "{rates:?}");
        assert!((rates.finished - 40.0).abs() < 0.1, "{rates:?}");
        assert_eq!(history().rates("1"), Some(Rates::default()));
        assert_eq!(history().rates("2"), None);
        assert_eq!(History::default().rates("0"), None);
    }

    #[test]
    fn refusals_are_per_second_and_for_the_commonest_reason() {
        let table = Table::options().engines(1).memfd().unwrap();
        let mut observed = Observed::of(&table, Duration::from_secs(1));
        let (start, mut history) = (Instant::now(), History::default());
        for n in 0..60_u64 {
            let refusals = &mut observed.view.refusals_total;
            (refusals.table_tokens, refusals.unavailable) = (n, n * 3);
            history.note(start + Duration::from_millis(n * 100), &observed);
        }
        let (rate, reason) = history.refused().unwrap();
        assert!((rate - 40.0).abs() < 0.1, "{rate}");
        assert_eq!(reason, "unavailable");
        for seconds in [10, 11, 12] {
            history.note(start + Duration::from_secs(seconds), &observed);
        }
        assert_eq!(history.refused(), None, "none in the last seconds");
        assert_eq!(History::default().refused(), None);
    }

    #[test]
    fn only_the_last_minute_is_remembered() {
        let history = history();
        assert!(history.samples.len() <= 151, "{}", history.samples.len());
        assert_eq!(history.widest_spread(), Some(899.0));
        let minute: Vec<_> = history.minute("0", 6).into_iter().flatten().collect();
        let ends = [399.0, 499.0, 599.0, 699.0, 799.0, 899.0];
        // Up to five samples are merged.
        assert!(
            minute
                .iter()
                .zip(ends)
                .all(|(m, end)| (end - 5.0..=end).contains(m)),
            "{minute:?}"
        );
        assert_eq!(history.minute("2", 3), [None; 3]);
    }

    #[test]
    fn a_count_that_went_down_is_no_rate() {
        let table = Table::options().engines(1).memfd().unwrap();
        let mut observed = Observed::of(&table, Duration::from_secs(1));
        let (start, mut history) = (Instant::now(), History::default());
        // Another engine by the same name, in a new slot.
        for (n, admitted) in [(0, 900), (1, 3)] {
            observed.view.engines[0].admitted_total = admitted;
            history.note(start + Duration::from_secs(n), &observed);
        }
        assert_eq!(history.rates("0"), Some(Rates::default()));
    }
}
