//! The requests that the engines had in flight, moment by moment, from their own logs.

use std::time::Duration;

use serde::Serialize;

use crate::wire::{Change, Entry};

/// One round, as the engines saw it.
#[derive(Debug)]
pub(crate) struct Timeline {
    engines: usize,
    /// In the order of time.
    entries: Vec<(usize, Entry)>,
}

/// How far apart the most and the least loaded engine were while requests arrived.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Spread {
    pub(crate) peak_requests: u32,
    pub(crate) mean_requests: f64,
    pub(crate) peak_tokens: u64,
    pub(crate) mean_tokens: f64,
}

/// In flight at one engine.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    requests: u32,
    tokens: u64,
}

impl Timeline {
    pub(crate) fn new(logs: Vec<Vec<Entry>>) -> Self {
        let engines = logs.len();
        let mut entries: Vec<_> = (0..)
            .zip(logs)
            .flat_map(|(engine, log)| log.into_iter().map(move |entry| (engine, entry)))
            .filter(|(_, entry)| entry.change != Change::HungUp)
            .collect();
        entries.sort_by_key(|(_, entry)| entry.at);
        Self { engines, entries }
    }

    /// The requests that each engine received and did not have to abort.
    pub(crate) fn per_engine(&self) -> Vec<u32> {
        let mut sent = vec![0; self.engines];
        for (engine, entry) in &self.entries {
            match entry.change {
                Change::Received => sent[*engine] += 1,
                Change::Aborted => sent[*engine] -= 1,
                Change::Finished | Change::HungUp => {}
            }
        }
        sent
    }

    /// Whether the last request arrived before the first was finished, so that the split is also
    /// the batch.
    pub(crate) fn is_one_batch(&self) -> bool {
        match (self.times(Change::Received), self.times(Change::Finished)) {
            (Some((_, last_arrival)), Some((first_finish, _))) => last_arrival < first_finish,
            _ => true,
        }
    }

    /// The most that any engine had in flight at once.
    pub(crate) fn peak(&self) -> u32 {
        self.moments()
            .flat_map(|(_, loads)| loads)
            .map(|load| load.requests)
            .max()
            .unwrap_or(0)
    }

    /// Over the time from the first arrival to the last.
    pub(crate) fn spread(&self) -> Spread {
        let (_, last) = self.times(Change::Received).unwrap_or_default();
        let mut spread = Spread::default();
        let (mut requests_seconds, mut tokens_seconds, mut seconds) = (0.0, 0.0, 0.0);
        let mut before: Option<(Duration, u32, u64)> = None;
        for (at, loads) in self.moments().take_while(|(at, _)| *at <= last) {
            if let Some((since, requests, tokens)) = before {
                let lasted = (at - since).as_secs_f64();
                requests_seconds += lasted * f64::from(requests);
                tokens_seconds += lasted * tokens as f64;
                seconds += lasted;
            }
            let requests = range(loads.iter().map(|load| load.requests));
            let tokens = range(loads.iter().map(|load| load.tokens));
            spread.peak_requests = spread.peak_requests.max(requests);
            spread.peak_tokens = spread.peak_tokens.max(tokens);
            before = Some((at, requests, tokens));
        }
        if seconds > 0.0 {
            spread.mean_requests = requests_seconds / seconds;
            spread.mean_tokens = tokens_seconds / seconds;
        }
        spread
    }

    /// The requests in flight at one engine, as the corners of a line, by seconds since `origin`.
    pub(crate) fn curve(&self, engine: usize, origin: Duration) -> Vec<(f64, f64)> {
        let mut corners = Vec::new();
        let mut requests = 0.0;
        for (_, entry) in self
            .entries
            .iter()
            .filter(|(changed, _)| *changed == engine)
        {
            let seconds = entry.at.saturating_sub(origin).as_secs_f64();
            corners.push((seconds, requests));
            requests += if entry.change == Change::Received {
                1.0
            } else {
                -1.0
            };
            corners.push((seconds, requests));
        }
        corners
    }

    /// The first and the last time that an engine noted such a change.
    pub(crate) fn times(&self, change: Change) -> Option<(Duration, Duration)> {
        let mut times = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.change == change)
            .map(|(_, entry)| entry.at);
        let first = times.next()?;
        Some((first, times.next_back().unwrap_or(first)))
    }

    /// What each engine has in flight after each change.
    fn moments(&self) -> impl Iterator<Item = (Duration, Vec<Load>)> {
        let mut loads = vec![Load::default(); self.engines];
        self.entries.iter().map(move |(engine, entry)| {
            let load = &mut loads[*engine];
            let tokens = u64::from(entry.tokens);
            match entry.change {
                Change::Received => {
                    (load.requests, load.tokens) = (load.requests + 1, load.tokens + tokens)
                }
                Change::Finished | Change::Aborted => {
                    (load.requests, load.tokens) = (load.requests - 1, load.tokens - tokens);
                }
                Change::HungUp => {}
            }
            (entry.at, loads.clone())
        })
    }
}

/// Largest minus smallest.
pub(crate) fn range<T>(numbers: impl Iterator<Item = T> + Clone) -> T
where
    T: Ord + Default + std::ops::Sub<Output = T>,
{
    let smallest = numbers.clone().min().unwrap_or_default();
    numbers.max().unwrap_or_default() - smallest
}
