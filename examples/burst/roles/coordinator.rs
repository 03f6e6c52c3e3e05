//! The coordinator: collects the engines' statistics, and broadcasts them at fixed times.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::inbox;
use crate::roles::{obey, tell};
use crate::scratch::{self, Places};
use crate::wire::{self, Broadcast, Event, Stats, ToCoordinator};

#[derive(Debug)]
enum Input {
    Subscribed(Arc<UnixStream>),
    Reported { engine: usize, stats: Stats },
    HungUp,
}

pub(crate) fn run(places: &Places, engines: usize, publish_every: Duration) -> Result<(), Error> {
    let (inbox, inputs) = mpsc::channel();
    inbox::accept(scratch::listen(&places.coordinator())?, move |stream| {
        let Ok(reader) = stream.try_clone() else {
            return;
        };
        let writer = Arc::new(stream);
        let input = move |message| match message {
            ToCoordinator::Subscribe => Input::Subscribed(Arc::clone(&writer)),
            ToCoordinator::Report { engine, stats } => Input::Reported { engine, stats },
        };
        inbox::forward(reader, inbox.clone(), input, Input::HungUp);
    });
    obey(|_| {});
    tell(&Event::Ready);

    let mut last: Broadcast = vec![Stats::default(); engines];
    let mut frontends = Vec::new();
    let mut next = Instant::now() + publish_every;
    loop {
        match inputs.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Input::Subscribed(frontend)) => frontends.push(frontend),
            Ok(Input::Reported { engine, stats }) => last[engine] = stats,
            // The parent has noticed it, too.
            Ok(Input::HungUp) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if Instant::now() >= next {
            // A frontend that has died takes no more broadcasts.
            frontends.retain(|frontend| wire::send(&**frontend, &last).is_ok());
            next = Instant::now() + publish_every;
        }
    }
}
