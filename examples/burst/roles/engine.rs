//! An engine: decodes in steps of fixed length, one token a step for each request of its batch.

use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::error::Error;
use crate::inbox;
use crate::roles::{obey, tell};
use crate::scratch::{self, Places};
use crate::wire::{self, Change, Command, Entry, Event, Finished, Request, Stats, ToCoordinator};

/// Length of a decode step.
pub(crate) const STEP: Duration = Duration::from_millis(20);

/// Requests decoded together at most: the largest size with a CUDA graph.
const MAX_BATCH: usize = 512;

/// Tokens that fit the KV cache.
const KV_TOKENS: u64 = 400_000;

#[derive(Debug)]
struct Engine {
    index: usize,
    coordinator: UnixStream,
    frontends: HashMap<Connection, UnixStream>,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    reported: Stats,
    log: Vec<Entry>,
}

/// A frontend's connection, numbered as they come.
type Connection = u64;

/// A request and how far it is.
#[derive(Debug)]
struct Sequence {
    from: Connection,
    request: Request,
    generated: u32,
}

#[derive(Debug)]
enum Input {
    Connected(Connection, UnixStream),
    Submitted {
        from: Connection,
        request: Request,
        at: Duration,
    },
    HungUp(Connection),
    Command(Command),
}

pub(crate) fn run(places: &Places, index: usize) -> Result<(), Error> {
    let (inbox, inputs) = mpsc::channel();
    let from_parent = inbox.clone();
    obey(move |command| {
        let _ = from_parent.send(Input::Command(command));
    });

    let mut connections = 0..;
    inbox::accept(scratch::listen(&places.engine(index))?, move |stream| {
        let (Some(from), Ok(reader)) = (connections.next(), stream.try_clone()) else {
            return;
        };
        // The loop learns of the connection before it learns of anything that came over it.
        if inbox.send(Input::Connected(from, stream)).is_ok() {
            let input = move |request| Input::Submitted {
                from,
                request,
                at: clock::now(),
            };
            inbox::forward(reader, inbox.clone(), input, Input::HungUp(from));
        }
    });
    let coordinator = scratch::connect(&places.coordinator())?;
    tell(&Event::Ready);

    let mut engine = Engine {
        index,
        coordinator,
        frontends: HashMap::new(),
        waiting: VecDeque::new(),
        running: Vec::new(),
        reported: Stats::default(),
        log: Vec::new(),
    };
    engine.work(&inputs)
}

impl Engine {
    fn work(&mut self, inputs: &Receiver<Input>) -> Result<(), Error> {
        loop {
            if self.is_idle() {
                let Ok(input) = inputs.recv() else {
                    return Ok(());
                };
                self.take(input);
            }
            while let Ok(input) = inputs.try_recv() {
                self.take(input);
            }
            self.admit();
            if !self.is_idle() {
                thread::sleep(STEP);
                self.decode();
            }
            self.report()?;
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Connected(from, stream) => {
                self.frontends.insert(from, stream);
            }
            Input::Submitted { from, request, at } => {
                self.log.push(Entry {
                    at,
                    from,
                    change: Change::Received,
                    tokens: request.tokens,
                });
                self.waiting.push_back(Sequence {
                    from,
                    request,
                    generated: 0,
                });
            }
            Input::HungUp(from) => self.abort(from),
            Input::Command(Command::Log) => tell(&Event::Log(std::mem::take(&mut self.log))),
            Input::Command(other) => tell(&Event::Failed(format!("an engine cannot {other:?}"))),
        }
    }

    /// No client waits for these any more.
    fn abort(&mut self, from: Connection) {
        self.frontends.remove(&from);
        let at = clock::now();
        let held = self
            .waiting
            .iter()
            .chain(&self.running)
            .filter(|sequence| sequence.from == from);
        self.log.extend(held.map(|sequence| Entry {
            at,
            from,
            change: Change::Aborted,
            tokens: sequence.request.tokens,
        }));
        self.log.push(Entry {
            at,
            from,
            change: Change::HungUp,
            tokens: 0,
        });
        self.waiting.retain(|sequence| sequence.from != from);
        self.running.retain(|sequence| sequence.from != from);
    }

    /// In the order of arrival, as far as the batch and the KV cache have room. A request that is
    /// too large for the cache runs alone.
    fn admit(&mut self) {
        let mut used = self.kv_tokens();
        while let Some(next) = self.waiting.front() {
            used += u64::from(next.request.tokens) + u64::from(next.request.steps);
            let fits = self.running.len() < MAX_BATCH && used <= KV_TOKENS;
            if !fits && !self.running.is_empty() {
                break;
            }
            self.running.extend(self.waiting.pop_front());
        }
    }

    /// The end of a step: every running request has one more token.
    fn decode(&mut self) {
        for sequence in &mut self.running {
            sequence.generated += 1;
        }
        let at = clock::now();
        let mut finished: HashMap<Connection, Finished> = HashMap::new();
        for Sequence { from, request, .. } in
            self.running.extract_if(.., |sequence| sequence.is_done())
        {
            self.log.push(Entry {
                at,
                from,
                change: Change::Finished,
                tokens: request.tokens,
            });
            finished.entry(from).or_default().push(request.id);
        }
        for (from, ids) in finished {
            if let Some(frontend) = self.frontends.get(&from) {
                // One that has died hangs up as well, and is dealt with then.
                let _ = wire::send(frontend, &ids);
            }
        }
    }

    /// Tells the coordinator, if there is something new to tell. What has arrived during the step
    /// is still in the inbox, and not part of it.
    fn report(&mut self) -> Result<(), Error> {
        let stats = Stats {
            waiting: self.waiting.len() as u32,
            running: self.running.len() as u32,
            kv_usage: (self.kv_tokens() as f32 / KV_TOKENS as f32).min(1.0),
        };
        if stats == self.reported {
            return Ok(());
        }
        self.reported = stats;
        wire::send(
            &self.coordinator,
            &ToCoordinator::Report {
                engine: self.index,
                stats,
            },
        )
        .map_err(|source| Error::System {
            what: "report to the coordinator".to_owned(),
            source,
        })
    }

    fn kv_tokens(&self) -> u64 {
        self.running.iter().map(Sequence::kv_tokens).sum()
    }
}

impl Sequence {
    fn is_done(&self) -> bool {
        self.generated >= self.request.steps
    }

    fn kv_tokens(&self) -> u64 {
        u64::from(self.request.tokens) + u64::from(self.generated)
    }
}
