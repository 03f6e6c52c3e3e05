//! Warnings: what is wrong with a table, or unexpected.

use crate::format::{age, count};
use crate::observed::is_full;
use crate::output::printable;
use crate::queue::waiting;
use headcount::{EngineState, EngineView, FrontendView, QueueView, View};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Something that an operator should know.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Warning {
    /// Frontends count in a table that lay at the path before, so caps are exceeded.
    OtherTable { pids: Vec<u32>, in_flight: u64 },
    /// A frontend has died, and what it held is still counted.
    DeadFrontend {
        slot: usize,
        pid: u32,
        in_flight: u64,
        waiting: u64,
    },
    /// The snapshot is so old that policies ignore it.
    StaleSnapshot { age_seconds: f64 },
    /// There is a snapshot, and no publisher to renew it.
    NoPublisher,
    /// No engine takes requests.
    NoActiveEngine,
    /// The table takes no more requests, or no more tokens.
    TableFull { cap: u32, what: &'static str },
    /// As many requests wait as may, of all classes or of one.
    QueueFull { waiting: u64, class: Option<u8> },
    /// Requests wait, and engines take none because they are drained.
    WaitingWhileDrained { waiting: u64, engines: Vec<String> },
    /// An engine takes no more requests, or no more tokens.
    EngineFull { engine: String },
    /// A request like those in flight has too many tokens for what the table has room for.
    TableShortOfTokens {
        tokens: u64,
        max_tokens: u32,
        mean: u64,
    },
    /// A request like those in flight on an engine has too many tokens for what it has room for.
    EngineShortOfTokens {
        engine: String,
        tokens: u64,
        max_tokens: u32,
        mean: u64,
    },
    /// An engine takes no new requests.
    EngineDraining { engine: String, in_flight: u32 },
    /// An engine is marked as not answering.
    EngineDown { engine: String, in_flight: u32 },
}

impl Warning {
    /// Returns all warnings, the worst first.
    pub(crate) fn all(view: &View, stale_after: Duration) -> Vec<Self> {
        let mut all = Vec::new();
        if !view.engines.iter().any(|e| e.state == EngineState::Active) {
            all.push(Self::NoActiveEngine);
        }
        for frontend in view.frontends.iter().filter(|frontend| !frontend.alive) {
            all.push(Self::DeadFrontend {
                slot: frontend.slot,
                pid: frontend.pid,
                in_flight: frontend.in_flight,
                waiting: frontend.waiting,
            });
        }
        if let Some(snapshot) = &view.snapshot {
            if snapshot.age > stale_after {
                let age_seconds = snapshot.age.as_secs_f64();
                all.push(Self::StaleSnapshot { age_seconds });
            }
            if view.publisher.is_none() {
                all.push(Self::NoPublisher);
            }
        }
        let sum = |of: fn(&EngineView) -> u32| -> u64 {
            view.engines.iter().map(|e| u64::from(of(e))).sum()
        };
        for (cap, has, what) in [
            (view.max_in_flight, sum(|e| e.in_flight), "requests"),
            (view.max_tokens, sum(|e| e.tokens), "tokens"),
        ] {
            if let Some(cap) = cap.filter(|cap| has >= u64::from(*cap)) {
                all.push(Self::TableFull { cap, what });
            }
        }
        if let Some(queue) = &view.queue {
            all.extend(Self::of_queue(queue, &view.engines));
        }
        let (requests, tokens) = (sum(|e| e.in_flight), sum(|e| e.tokens));
        if let Some((max_tokens, mean)) = short_of_tokens(view.max_tokens, tokens, requests) {
            all.push(Self::TableShortOfTokens {
                tokens,
                max_tokens,
                mean,
            });
        }
        for e in &view.engines {
            let (engine, in_flight) = (e.name.clone(), e.in_flight);
            match e.state {
                EngineState::Down => all.push(Self::EngineDown { engine, in_flight }),
                EngineState::Draining => all.push(Self::EngineDraining { engine, in_flight }),
                EngineState::Active if is_full(e) => all.push(Self::EngineFull { engine }),
                EngineState::Active => {
                    let tokens = e.tokens.into();
                    let short = short_of_tokens(e.max_tokens, tokens, in_flight.into());
                    all.extend(short.map(|(max_tokens, mean)| Self::EngineShortOfTokens {
                        engine,
                        tokens,
                        max_tokens,
                        mean,
                    }));
                }
                _ => {}
            }
        }
        all
    }

    /// The warnings about requests that wait.
    fn of_queue(queue: &QueueView, engines: &[EngineView]) -> Vec<Self> {
        let mut all = Vec::new();
        let waiting = waiting(queue);
        if waiting == 0 {
            return all;
        }
        if waiting >= u64::from(queue.max_waiting) {
            let class = None;
            all.push(Self::QueueFull { waiting, class });
        }
        for (class, view) in queue.classes.iter().enumerate() {
            let bound = view.max_waiting.filter(|bound| view.waiting >= *bound);
            all.extend(bound.map(|_| Self::QueueFull {
                waiting: view.waiting.into(),
                class: Some(class as u8),
            }));
        }
        let drained = (engines.iter()).filter(|e| e.state == EngineState::Draining);
        let engines: Vec<_> = drained.map(|engine| engine.name.clone()).collect();
        if !engines.is_empty() {
            all.push(Self::WaitingWhileDrained { waiting, engines });
        }
        all
    }

    /// The warning about frontends that live in former tables at the path.
    pub(crate) fn other_table(frontends: &[FrontendView]) -> Self {
        Self::OtherTable {
            pids: frontends.iter().map(|frontend| frontend.pid).collect(),
            in_flight: (frontends.iter()).fold(0, |sum: u64, frontend| {
                sum.saturating_add(frontend.in_flight)
            }),
        }
    }

    /// Whether an operator should act, and it is not just a state.
    pub(crate) fn is_serious(&self) -> bool {
        !matches!(self, Self::EngineDraining { .. } | Self::EngineDown { .. })
    }
}

/// Returns the cap on tokens and the mean of the requests in flight, if the cap leaves room for tokens, but for fewer
/// than the mean.
fn short_of_tokens(cap: Option<u32>, tokens: u64, requests: u64) -> Option<(u32, u64)> {
    let cap = cap.filter(|cap| u64::from(*cap) > tokens)?;
    let mean = tokens.checked_div(requests)?;
    (u64::from(cap) - tokens < mean).then_some((cap, mean))
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTable { pids, in_flight } => {
                let (subject, verb, object) = match pids.as_slice() {
                    [pid] => (format!("pid {pid}"), "counts", "it"),
                    pids => {
                        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                        (format!("pids {}", pids.join(", ")), "count", "them")
                    }
                };
                write!(
                    f,
                    "{subject} still {verb} in a former table at this path, with {in_flight} in flight there; restart {object}"
                )
            }
            Self::DeadFrontend {
                slot,
                pid,
                in_flight,
                waiting: 0,
            } => write!(
                f,
                "frontend {slot} (pid {pid}) is dead and holds {in_flight}; `headcount reap` returns them"
            ),
            Self::DeadFrontend {
                slot,
                pid,
                in_flight,
                waiting,
            } => write!(
                f,
                "frontend {slot} (pid {pid}) is dead, holds {in_flight} and waits for {waiting}; `headcount reap` returns them"
            ),
            Self::QueueFull { waiting, class } => {
                let of_class = class.map_or(String::new(), |class| format!(" for class {class}"));
                let requests = count(*waiting, "request");
                let verb = if *waiting == 1 { "waits" } else { "wait" };
                write!(
                    f,
                    "the queue is full{of_class}: {requests} {verb}, and further ones are refused"
                )
            }
            Self::WaitingWhileDrained { waiting, engines } => {
                let requests = count(*waiting, "request");
                let verb = if *waiting == 1 { "waits" } else { "wait" };
                let engines: Vec<_> = engines.iter().map(|engine| printable(engine)).collect();
                let (noun, is) = match engines.as_slice() {
                    [_] => ("engine", "is"),
                    _ => ("engines", "are"),
                };
                write!(
                    f,
                    "{requests} {verb} while {noun} {} {is} drained; `headcount undrain` lets them go there",
                    engines.join(", ")
                )
            }
            Self::StaleSnapshot { age_seconds } => {
                let old = age(Duration::try_from_secs_f64(*age_seconds).unwrap_or_default());
                write!(f, "the snapshot is {old} old: policies ignore it")
            }
            Self::NoPublisher => write!(f, "no process publishes: the snapshot only gets older"),
            Self::NoActiveEngine => write!(f, "no engine takes requests"),
            Self::TableFull { cap, what } => {
                write!(f, "the table is at its cap of {cap} {what}")
            }
            Self::EngineFull { engine } => write!(f, "engine {} is at its cap", printable(engine)),
            Self::TableShortOfTokens {
                tokens,
                max_tokens,
                mean,
            } => write!(
                f,
                "the table has {tokens} of at most {max_tokens} tokens: a request of {mean}, the mean, finds no room"
            ),
            Self::EngineShortOfTokens {
                engine,
                tokens,
                max_tokens,
                mean,
            } => write!(
                f,
                "engine {} has {tokens} of at most {max_tokens} tokens: a request of {mean}, its mean, finds no room",
                printable(engine)
            ),
            Self::EngineDraining { engine, in_flight } => {
                write!(
                    f,
                    "engine {} drains: {in_flight} in flight",
                    printable(engine)
                )
            }
            Self::EngineDown { engine, in_flight } => {
                write!(
                    f,
                    "engine {} is down: {in_flight} in flight",
                    printable(engine)
                )
            }
        }
    }
}
