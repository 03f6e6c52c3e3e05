//! The operations in which a process is killed, each with its preparation.

use crate::queue;
use headcount::{Engine, EngineStats, Frontend, Options, Permit, Publisher, Request, Table};
use headcount_tests::Damage;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// One operation of a process that may be killed at any instruction of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Route,
    Finish,
    RouteWithTokens,
    FinishWithTokens,
    /// Of a request, under a cap of the table.
    AddTokens,
    GiveTokensBack,
    RouteMany,
    /// Under the tag of an operation of long ago, of which there still is a witness.
    RouteLongAfter,
    Publish,
    Join,
    Leave,
    Reap,
    AddEngine,
    RemoveEngine,
    Drain,
    SetCaps,
    /// Which gives a table that has none its first caps.
    Apply,
    Deploy,
    /// Of a request for whose place another process waits.
    FinishAndWake,
    /// By a request that waits, and whose time is over.
    AcquireAndGiveUp,
    /// By a request that waits, and gets a place.
    AcquireAndTake,
}

pub(crate) const ALL: [Operation; 21] = [
    Operation::Route,
    Operation::Finish,
    Operation::RouteWithTokens,
    Operation::FinishWithTokens,
    Operation::AddTokens,
    Operation::GiveTokensBack,
    Operation::RouteMany,
    Operation::RouteLongAfter,
    Operation::Publish,
    Operation::Join,
    Operation::Leave,
    Operation::Reap,
    Operation::AddEngine,
    Operation::RemoveEngine,
    Operation::Drain,
    Operation::SetCaps,
    Operation::Apply,
    Operation::Deploy,
    Operation::FinishAndWake,
    Operation::AcquireAndGiveUp,
    Operation::AcquireAndTake,
];

/// What a process has when it comes to its operation.
pub(crate) struct Prepared {
    table: Table,
    frontend: Option<Frontend>,
    permits: Vec<Permit>,
    publisher: Option<Publisher>,
    /// Another frontend of the process.
    second: Option<Frontend>,
}

/// The table's own cap in requests.
pub(crate) const CAP: u32 = 100;

/// The table's own cap in tokens, if it has one.
pub(crate) const CAP_IN_TOKENS: u32 = 1_000;

/// The cap of engine 0, after an [`Operation::Apply`].
pub(crate) const CAP_OF_FIRST: u32 = 20;

/// The statistics that are published.
pub(crate) const STATS: EngineStats = EngineStats::new()
    .waiting(7)
    .running(7)
    .kv_usage(0.25)
    .in_flight(7);

impl Operation {
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// Returns n if only every n-th instruction is tried, for operations that have very many.
    pub(crate) fn every(self) -> usize {
        match self {
            Self::Apply => 11,
            Self::Deploy => 3,
            Self::AcquireAndGiveUp => 7,
            // At each point it sleeps for 50 ms.
            Self::AcquireAndTake => 29,
            _ => 1,
        }
    }

    /// Whether another process waits meanwhile.
    pub(crate) fn is_of_the_queue(self) -> bool {
        matches!(
            self,
            Self::FinishAndWake | Self::AcquireAndGiveUp | Self::AcquireAndTake
        )
    }

    /// What the table is created with.
    pub(crate) fn created(self) -> Options {
        let options = Table::options()
            .engines(2)
            .max_engines(3)
            .max_frontends(3)
            .threads(1);
        match self {
            Self::Apply => options,
            Self::AddTokens => options.max_in_flight(CAP).max_tokens(CAP_IN_TOKENS),
            _ => options.max_in_flight(CAP),
        }
    }

    /// Joins and so on, in the process that is to be killed.
    pub(crate) fn prepare(self, table: &Table) -> Prepared {
        let joins = !matches!(self, Self::Join | Self::Reap | Self::Publish);
        let frontend = joins.then(|| table.join().expect("joins"));
        let mut second = None;
        let permits = match (self, &frontend) {
            (Self::RouteLongAfter, Some(frontend)) => {
                let witness = table.join().expect("joins");
                let permits = let_tags_come_round(frontend, &witness);
                second = Some(witness);
                permits
            }
            (operation, Some(frontend)) if operation.is_of_the_queue() => {
                queue::held_by(operation, frontend)
            }
            (Self::Finish, Some(frontend)) => frontend.route_many(1).expect("routes"),
            (Self::FinishWithTokens | Self::AddTokens | Self::GiveTokensBack, Some(frontend)) => {
                let request = Request::new().tokens(50);
                frontend.route_many_with(1, &request).expect("routes")
            }
            _ => Vec::new(),
        };
        let publishes = self == Self::Publish;
        Prepared {
            table: table.clone(),
            frontend,
            permits,
            publisher: publishes.then(|| table.publisher().expect("publishes")),
            second,
        }
    }

    /// The operation itself. What it makes is leaked: the process is killed right after it.
    pub(crate) fn perform(self, prepared: Prepared) {
        let Prepared {
            table,
            frontend,
            mut permits,
            publisher,
            second,
        } = prepared;
        let route = |request: &Request<'_>| {
            std::mem::forget(
                frontend
                    .as_ref()
                    .map(|frontend| frontend.route_with(request)),
            );
        };
        match self {
            Self::Route => route(&Request::new()),
            Self::RouteWithTokens => route(&Request::new().tokens(50)),
            Self::RouteLongAfter => {
                route(&Request::new().pin(1));
                std::mem::forget((permits, second));
            }
            Self::Finish | Self::FinishWithTokens => drop(permits),
            Self::FinishAndWake => {
                drop(permits);
                std::mem::forget(frontend);
            }
            Self::AcquireAndGiveUp => {
                frontend.iter().for_each(queue::give_up);
                std::mem::forget(frontend);
            }
            Self::AcquireAndTake => {
                (frontend.iter()).for_each(|own| queue::take(own, std::mem::take(&mut permits)));
                std::mem::forget(frontend);
            }
            Self::AddTokens | Self::GiveTokensBack => {
                let tokens = if self == Self::AddTokens { 90 } else { 20 };
                for permit in &mut permits {
                    let set = permit.set_tokens(tokens);
                    assert!(set.is_ok(), "there is room");
                }
                std::mem::forget((permits, frontend));
            }
            Self::RouteMany => {
                std::mem::forget(frontend.as_ref().map(|frontend| frontend.route_many(3)));
            }
            Self::Publish => {
                let words = [STATS.waiting.into(); 2];
                std::mem::forget(publisher.map(|mut p| p.publish_with(&[STATS; 2], words)));
            }
            Self::Join => std::mem::forget(table.join()),
            Self::Leave => drop(frontend),
            Self::Reap => std::mem::forget(table.reap()),
            Self::AddEngine => std::mem::forget(table.add(Engine::named("third"))),
            Self::RemoveEngine => std::mem::forget(table.remove(1)),
            Self::Drain => std::mem::forget(table.drain(1)),
            Self::SetCaps => std::mem::forget(table.set_caps(1, Some(500), Some(5_000))),
            Self::Apply => std::mem::forget(table.apply(&asked())),
            Self::Deploy => std::mem::forget(table.deploy()),
        }
    }
}

/// What [`Operation::Apply`] asks for: engine 0 has a cap, engine 1 goes, a third one comes, and the table has
/// caps of its own.
pub(crate) fn asked() -> Options {
    let first = Engine::named("0").max_in_flight(CAP_OF_FIRST);
    let options = Table::options()
        .engine(first)
        .engine(Engine::named("third"));
    options.max_in_flight(CAP).max_tokens(100_000)
}

/// Has a frontend admit a request to engine 1, another one see that, and the lane of the former come round
/// to where its next request there has the same tag. What it would have done in the meantime is left
/// out, but for its sweeps.
fn let_tags_come_round(frontend: &Frontend, witness: &Frontend) -> Vec<Permit> {
    const TAGS: u64 = 1 << 29;
    let table = frontend.table();
    let descriptor = table.as_fd().as_raw_fd();
    let path = format!("/proc/self/fd/{descriptor}");
    let file = Damage::to(table, Path::new(&path));
    let pin = |frontend: &Frontend, engine| {
        let request = Request::new().pin(engine);
        frontend.route_with(&request).expect("routes")
    };
    // So that its number is larger than what the last sweep takes: a lane's numbers only grow.
    for _ in 0..2 {
        drop(pin(frontend, 0));
    }
    let first = pin(frontend, 1);
    // The lane that it has used, and the number of its last operation.
    let lanes = table.dimensions().threads + 1;
    let (mut lane, mut number) = (0, 0);
    for index in frontend.slot() * lanes..(frontend.slot() + 1) * lanes {
        file.change("lanes", index as u64, 0, |operation| {
            if operation > 0 {
                (lane, number) = (index as u64, operation);
            }
            operation
        });
    }
    let seen = pin(witness, 1);
    let skip_to = |operation| {
        file.change("lanes", lane, 0, |last| {
            assert!(last <= operation, "numbers only grow");
            operation
        });
    };
    for quarter in 1..=4 {
        skip_to(quarter * TAGS / 4 - 2);
        drop(pin(frontend, 0));
    }
    // The table's own row takes a number before the engine's does, and one after it.
    skip_to(TAGS + number - 3);
    vec![first, seen]
}
