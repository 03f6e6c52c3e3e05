//! A frontend: takes requests from clients, chooses an engine for each, and passes on the answers.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use headcount::{AcquireError, Frontend, Permit};

use crate::clock;
use crate::error::Error;
use crate::inbox;
use crate::roles::{obey, tell};
use crate::scratch::{self, Places};
use crate::strategy::{Seat, Strategy};
use crate::wire::{self, Broadcast, Command, Event, Finished, Request, ToCoordinator};

/// Longer than a request waits in any run that goes well.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
enum Input {
    Command(Command),
    Broadcast(Broadcast),
    Finished(Finished),
    /// A request that has waited has its place, or none.
    Waited(Request, Result<Permit, AcquireError>),
    HungUp,
}

pub(crate) fn run(places: &Places, seat: Seat, strategy: Strategy) -> Result<(), Error> {
    let mut strategy = strategy.at(seat, places)?;
    let (inbox, inputs) = mpsc::channel();
    let from_parent = inbox.clone();
    obey(move |command| {
        let _ = from_parent.send(Input::Command(command));
    });

    let coordinator = scratch::connect(&places.coordinator())?;
    wire::send(&coordinator, &ToCoordinator::Subscribe)
        .map_err(|source| broken("the coordinator", source))?;
    inbox::forward(coordinator, inbox.clone(), Input::Broadcast, Input::HungUp);

    let mut engines = Vec::new();
    for engine in 0..seat.engines {
        let stream = scratch::connect(&places.engine(engine))?;
        let reader = stream
            .try_clone()
            .map_err(|source| broken("an engine", source))?;
        inbox::forward(reader, inbox.clone(), Input::Finished, Input::HungUp);
        engines.push(stream);
    }
    tell(&Event::Ready);

    // Which engine has which request, for as long as its client waits.
    let mut sent_to: HashMap<u64, usize> = HashMap::new();
    // The permits of requests that had to wait for them.
    let mut permits: HashMap<u64, Permit> = HashMap::new();
    for input in inputs {
        let placed = match input {
            Input::Command(Command::Submit(request)) => {
                match (strategy.choose(&request)?, strategy.queue()) {
                    (Some(engine), _) => Some((request, engine)),
                    (None, Some(queue)) => {
                        wait(queue, request, inbox.clone())?;
                        None
                    }
                    (None, None) => {
                        tell(&Event::Refused(request.id));
                        None
                    }
                }
            }
            Input::Waited(request, Ok(permit)) => {
                let engine = permit.engine().index();
                permits.insert(request.id, permit);
                Some((request, engine))
            }
            Input::Waited(_, Err(error)) => {
                tell(&Event::Failed(error.to_string()));
                None
            }
            Input::Finished(ids) => {
                for id in &ids {
                    if let Some(engine) = sent_to.remove(id) {
                        strategy.finished(*id, engine);
                    }
                    permits.remove(id);
                }
                tell(&Event::Finished(ids));
                None
            }
            Input::Broadcast(stats) => {
                strategy.broadcast(&stats)?;
                None
            }
            Input::Command(Command::Count) => {
                tell(&Event::Counted(sent_to.len() as u64));
                None
            }
            Input::Command(other) => {
                tell(&Event::Failed(format!("a frontend cannot {other:?}")));
                None
            }
            // The parent has noticed it, too.
            Input::HungUp => None,
        };
        if let Some((request, engine)) = placed {
            sent_to.insert(request.id, engine);
            wire::send(&engines[engine], &request).map_err(|source| broken("an engine", source))?;
            if seat.tells_places {
                let (id, at) = (request.id, clock::now());
                tell(&Event::Placed { id, at });
            }
        }
    }
    Ok(())
}

/// Lets a request wait for its place, in a thread of its own.
fn wait(queue: Frontend, request: Request, inbox: Sender<Input>) -> Result<(), Error> {
    let waits = move || {
        let tokens = headcount::Request::new().tokens(request.tokens);
        let permit = queue.acquire(&tokens, PATIENCE);
        let _ = inbox.send(Input::Waited(request, permit));
    };
    let started = thread::Builder::new().spawn(waits);
    started.map(drop).map_err(|source| Error::System {
        what: "start a thread that waits".to_owned(),
        source,
    })
}

fn broken(peer: &str, source: io::Error) -> Error {
    Error::System {
        what: format!("talk to {peer}"),
        source,
    }
}
