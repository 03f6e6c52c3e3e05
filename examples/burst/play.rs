//! The clients: send the requests of a round at their times, and wait for the answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::arrivals::Arrival;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::kill::{self, Killed};
use crate::process::Process;
use crate::progress::Progress;
use crate::wire::{Command, Event, Request};

/// Without an answer for so long, a run has failed.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Clients<'a> {
    deployment: &'a mut Deployment,
    progress: &'a mut Progress,
    /// The requests without an answer, by id, and the frontend that each was sent to.
    open: BTreeMap<u64, (usize, Request)>,
}

/// Plays one round to its end: every request is answered, and counted nowhere any more.
pub(crate) fn play(
    deployment: &mut Deployment,
    arrivals: &[Arrival],
    progress: &mut Progress,
    with_kill: bool,
) -> Result<Option<Killed>, Error> {
    let mut clients = Clients {
        deployment,
        progress,
        open: BTreeMap::new(),
    };
    let mut killed = None;
    let start = Instant::now();
    for (arrival, position) in arrivals.iter().zip(0..) {
        clients.listen_until(start + arrival.at)?;
        if with_kill && position == arrivals.len() / 2 {
            killed = Some(clients.kill_one()?);
        }
        clients.submit(arrival.connection, arrival.request)?;
    }
    while !clients.open.is_empty() {
        clients.listen_once()?;
    }
    Ok(killed)
}

impl Clients<'_> {
    fn submit(&mut self, connection: u64, request: Request) -> Result<(), Error> {
        let frontends = self.deployment.frontends();
        let frontend = frontends[(connection % frontends.len() as u64) as usize];
        self.open.insert(request.id, (frontend, request));
        self.deployment
            .command(Process::Frontend(frontend), &Command::Submit(request))
    }

    /// The frontend with the lowest index dies, and its clients, whose connections break, send
    /// again.
    fn kill_one(&mut self) -> Result<Killed, Error> {
        let victim = self.deployment.frontends()[0];
        self.deployment.kill(Process::Frontend(victim));
        let broken: Vec<_> = self
            .open
            .values()
            .filter(|(frontend, _)| *frontend == victim)
            .map(|(_, request)| *request)
            .collect();
        let killed = kill::reap(self.deployment.table(), victim, broken.len())?;
        for (request, connection) in broken.into_iter().zip(0..) {
            self.submit(connection, request)?;
        }
        Ok(killed)
    }

    fn listen_until(&mut self, deadline: Instant) -> Result<(), Error> {
        while let Some((_, event)) = self.deployment.event_before(deadline)? {
            self.hear(event);
        }
        Ok(())
    }

    fn listen_once(&mut self) -> Result<(), Error> {
        let Some((_, event)) = self.deployment.event_before(Instant::now() + PATIENCE)? else {
            let what = format!("answers to {} requests", self.open.len());
            return Err(Error::Stalled {
                what,
                seconds: PATIENCE.as_secs(),
            });
        };
        self.hear(event);
        Ok(())
    }

    fn hear(&mut self, event: Event) {
        if let Event::Finished(ids) = event {
            self.progress.advance(ids.len() as u64);
            for id in ids {
                self.open.remove(&id);
            }
        }
    }
}
