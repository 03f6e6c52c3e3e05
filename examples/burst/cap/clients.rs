//! The clients: each sends a request, waits for the answer and sends the next. One that is refused tries again.

use std::collections::BTreeMap;
use std::mem;
use std::time::{Duration, Instant};

use super::{Config, KILL_EVERY};
use crate::arrivals::SplitMix;
use crate::clock;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::process::Process;
use crate::progress::Progress;
use crate::wire::{Command, Event, Request};

/// How long a client waits when it was refused.
const PAUSE: Duration = Duration::from_millis(40);

/// Between two looks at the count.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Without an answer for so long, a run has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Decode steps of a request, 0.3 to 0.9 s.
const STEPS: (u32, u32) = (15, 45);

/// Prompt of a request.
const TOKENS: u32 = 256;

#[derive(Debug)]
pub(super) struct Clients<'a> {
    deployment: &'a mut Deployment,
    config: &'a Config,
    random: SplitMix,
    next_id: u64,
    /// The requests without an answer, by id, and the frontend that each was sent to.
    open: BTreeMap<u64, (usize, Request)>,
    /// The requests to be sent, in the order of time.
    due: BTreeMap<(Instant, u64), Request>,
    outcome: Outcome,
}

/// What came of it. Times are those of the [clock](crate::clock).
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) kills: Vec<Duration>,
    pub(super) counted: Vec<(Duration, u64)>,
    pub(super) answered: u64,
    pub(super) refused: u64,
}

impl<'a> Clients<'a> {
    pub(super) fn new(deployment: &'a mut Deployment, config: &'a Config) -> Self {
        Self {
            deployment,
            config,
            random: SplitMix(0),
            next_id: 0,
            open: BTreeMap::new(),
            due: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    /// Returns when all clients have stopped and all their requests are answered.
    pub(super) fn play(mut self, progress: &mut Progress) -> Result<Outcome, Error> {
        self.outcome.start = clock::now();
        let start = Instant::now();
        let kills = (1..=self.config.kills).map(|kill| start + KILL_EVERY * kill);
        let end = start + KILL_EVERY * (self.config.kills + 1);
        for _ in 0..self.config.clients {
            self.want(start);
        }
        for kill in kills {
            self.serve_until(kill)?;
            self.kill_one()?;
            progress.advance(1);
        }
        self.serve_until(end)?;
        self.outcome.end = clock::now();
        self.finish()?;
        Ok(self.outcome)
    }

    /// A client wants a new request served at this time.
    fn want(&mut self, at: Instant) {
        let id = self.next_id;
        self.next_id += 1;
        let (least, most) = STEPS;
        let steps = least + (self.random.next() % u64::from(most - least + 1)) as u32;
        let request = Request {
            id,
            tokens: TOKENS,
            steps,
        };
        self.due.insert((at, id), request);
    }

    fn serve_until(&mut self, end: Instant) -> Result<(), Error> {
        let mut next_look = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_look {
                self.look();
                next_look = now + LOOK_EVERY;
            }
            self.send_due(now)?;
            if now >= end {
                return Ok(());
            }
            let next_due = self.due.first_key_value().map_or(end, |((at, _), _)| *at);
            let deadline = end.min(next_look).min(next_due);
            if let Some((_, event)) = self.deployment.event_before(deadline)? {
                self.hear(event, true);
            }
        }
    }

    fn send_due(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let request = entry.remove();
            let frontends = self.deployment.frontends();
            let frontend = frontends[(self.random.next() % frontends.len() as u64) as usize];
            self.open.insert(request.id, (frontend, request));
            self.deployment
                .command(Process::Frontend(frontend), &Command::Submit(request))?;
        }
        Ok(())
    }

    /// The oldest frontend dies, and another one is started in its place. The clients, whose connections break,
    /// send again.
    fn kill_one(&mut self) -> Result<(), Error> {
        let victim = self.deployment.frontends()[0];
        self.outcome.kills.push(clock::now());
        self.deployment.kill(Process::Frontend(victim));
        self.deployment.start_frontend()?;
        if let Some(table) = self.deployment.table() {
            table.reap()?;
        }
        let now = Instant::now();
        for (id, (frontend, request)) in mem::take(&mut self.open) {
            if frontend == victim {
                self.due.insert((now, id), request);
            } else {
                self.open.insert(id, (frontend, request));
            }
        }
        Ok(())
    }

    /// The clients stop: they send nothing more, and wait for their answers.
    fn finish(&mut self) -> Result<(), Error> {
        while !self.open.is_empty() {
            let Some((_, event)) = self.deployment.event_before(Instant::now() + PATIENCE)? else {
                return Err(Error::Stalled {
                    what: format!("answers to {} requests", self.open.len()),
                    seconds: PATIENCE.as_secs(),
                });
            };
            self.hear(event, false);
        }
        Ok(())
    }

    fn hear(&mut self, event: Event, goes_on: bool) {
        let now = Instant::now();
        match event {
            Event::Finished(ids) => {
                for id in ids {
                    // One that a killed frontend had answered just before is sent again, and has another answer.
                    if self.open.remove(&id).is_some() && goes_on {
                        self.outcome.answered += 1;
                        self.want(now);
                    }
                }
            }
            Event::Refused(id) => {
                if let Some((_, request)) = self.open.remove(&id)
                    && goes_on
                {
                    self.outcome.refused += 1;
                    self.due.insert((now + PAUSE, id), request);
                }
            }
            _ => {}
        }
    }

    fn look(&mut self) {
        if let Some(counted) = self.deployment.counted() {
            self.outcome.counted.push((clock::now(), counted));
        }
    }
}
