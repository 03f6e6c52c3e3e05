//! The parts that the example plays when it starts itself again.

pub(crate) mod coordinator;
pub(crate) mod engine;
pub(crate) mod frontend;

use std::io;
use std::process::{self, ExitCode};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::scratch::Places;
use crate::strategy::{Seat, Strategy};
use crate::wire::{self, Command, Event};

/// One process's part. The parent passes it as JSON, as the value of a hidden option.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) role: Role,
    pub(crate) places: Places,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Coordinator {
        engines: usize,
        publish_every: Duration,
    },
    Engine {
        index: usize,
    },
    Frontend {
        seat: Seat,
        strategy: Strategy,
    },
}

/// Plays the part until the parent closes the standard input, or dies.
pub(crate) fn run(assignment: Assignment) -> ExitCode {
    // Whatever kills the parent, its children go with it. One that dies before this line is noticed
    // by the end of the standard input.
    let prepared =
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| Error::System {
            what: "follow the parent".to_owned(),
            source: error.into(),
        });

    let places = &assignment.places;
    let played = prepared.and_then(|()| match assignment.role {
        Role::Coordinator {
            engines,
            publish_every,
        } => coordinator::run(places, engines, publish_every),
        Role::Engine { index } => engine::run(places, index),
        Role::Frontend { seat, strategy } => frontend::run(places, seat, strategy),
    });
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&Event::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Tells the parent. If it does not listen any more, this process is about to end anyway.
fn tell(event: &Event) {
    let _ = wire::send(io::stdout().lock(), event);
}

/// Hands every command of the parent to `command`. When the parent is gone, so is this process.
fn obey(mut command: impl FnMut(Command) + Send + 'static) {
    thread::spawn(move || {
        wire::receive(io::stdin())
            .map_while(Result::ok)
            .for_each(&mut command);
        process::exit(0);
    });
}

impl FromStr for Assignment {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}
