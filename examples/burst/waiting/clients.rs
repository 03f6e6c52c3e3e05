//! The clients: send bursts, and try again when they are refused.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::served::Served;
use super::{Config, PAUSE};
use crate::arrivals::SplitMix;
use crate::clock;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::process::Process;
use crate::progress::Progress;
use crate::wire::{Command, Event, Request};

/// How many bursts there are.
pub(super) const BURSTS: u32 = 3;

/// From one burst to the next.
const BURST_EVERY: Duration = Duration::from_millis(2000);

/// In which the requests of a burst come.
const WINDOW: Duration = Duration::from_millis(500);

/// Without an answer for so long, a run has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Decode steps of a request, 0.2 to 0.6 s.
const STEPS: (u32, u32) = (10, 30);

/// Prompt of a request.
const TOKENS: u32 = 256;

#[derive(Debug)]
pub(super) struct Clients<'a> {
    deployment: &'a mut Deployment,
    config: &'a Config,
    random: SplitMix,
    /// The requests to be sent, in the order of time.
    due: BTreeMap<(Instant, u64), Request>,
    /// The requests that were sent and have no answer.
    open: BTreeMap<u64, Request>,
    outcome: Outcome,
}

/// What came of it. Times are those of the [clock](crate::clock).
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) refused: u64,
    pub(super) served: Served,
}

impl<'a> Clients<'a> {
    pub(super) fn new(deployment: &'a mut Deployment, config: &'a Config) -> Self {
        Self {
            deployment,
            config,
            random: SplitMix(0),
            due: BTreeMap::new(),
            open: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    /// Returns when all requests are answered.
    pub(super) fn play(mut self, progress: &mut Progress) -> Result<Outcome, Error> {
        self.outcome.start = clock::now();
        let start = Instant::now();
        for burst in 0..self.config.bursts {
            for number in 0..self.config.requests {
                let at = BURST_EVERY * burst + WINDOW.mul_f64(self.random.fraction());
                let (least, most) = STEPS;
                let steps = least + (self.random.next() % u64::from(most - least + 1)) as u32;
                let request = Request {
                    id: u64::from(burst * self.config.requests + number),
                    tokens: TOKENS,
                    steps,
                };
                self.due.insert((start + at, request.id), request);
            }
        }
        while !self.due.is_empty() || !self.open.is_empty() {
            let now = Instant::now();
            self.send_due(now)?;
            let next_due = self.due.first_key_value().map(|((at, _), _)| *at);
            let deadline = next_due.unwrap_or(now + PATIENCE);
            match self.deployment.event_before(deadline)? {
                Some((_, event)) => self.hear(event, progress),
                None if next_due.is_none() => {
                    return Err(Error::Stalled {
                        what: format!("answers to {} requests", self.open.len()),
                        seconds: PATIENCE.as_secs(),
                    });
                }
                None => {}
            }
        }
        self.outcome.end = clock::now();
        Ok(self.outcome)
    }

    fn send_due(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let request = entry.remove();
            let frontends = self.deployment.frontends();
            let frontend = frontends[(self.random.next() % frontends.len() as u64) as usize];
            self.open.insert(request.id, request);
            self.outcome.served.came(request.id, clock::now());
            self.deployment
                .command(Process::Frontend(frontend), &Command::Submit(request))?;
        }
        Ok(())
    }

    fn hear(&mut self, event: Event, progress: &mut Progress) {
        match event {
            Event::Placed { id, at } => self.outcome.served.placed(id, at),
            Event::Finished(ids) => {
                progress.advance(ids.len() as u64);
                for id in ids {
                    self.open.remove(&id);
                }
            }
            Event::Refused(id) => {
                if let Some(request) = self.open.remove(&id) {
                    self.outcome.refused += 1;
                    self.due.insert((Instant::now() + PAUSE, id), request);
                }
            }
            _ => {}
        }
    }
}
