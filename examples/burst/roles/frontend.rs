//! A frontend: takes requests from clients, chooses an engine for each, and passes on the answers.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc;

use crate::error::Error;
use crate::inbox;
use crate::roles::{obey, tell};
use crate::scratch::{self, Places};
use crate::strategy::{Seat, Strategy};
use crate::wire::{self, Broadcast, Command, Event, Finished, ToCoordinator};

#[derive(Debug)]
enum Input {
    Command(Command),
    Broadcast(Broadcast),
    Finished(Finished),
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
    for input in inputs {
        match input {
            Input::Command(Command::Submit(request)) => {
                let Some(engine) = strategy.choose(&request)? else {
                    tell(&Event::Refused(request.id));
                    continue;
                };
                sent_to.insert(request.id, engine);
                wire::send(&engines[engine], &request)
                    .map_err(|source| broken("an engine", source))?;
            }
            Input::Finished(ids) => {
                for id in &ids {
                    if let Some(engine) = sent_to.remove(id) {
                        strategy.finished(*id, engine);
                    }
                }
                tell(&Event::Finished(ids));
            }
            Input::Broadcast(stats) => strategy.broadcast(&stats)?,
            Input::Command(Command::Count) => tell(&Event::Counted(sent_to.len() as u64)),
            Input::Command(other) => tell(&Event::Failed(format!("a frontend cannot {other:?}"))),
            // The parent has noticed it, too.
            Input::HungUp => {}
        }
    }
    Ok(())
}

fn broken(peer: &str, source: io::Error) -> Error {
    Error::System {
        what: format!("talk to {peer}"),
        source,
    }
}
