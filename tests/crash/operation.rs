//! The operations that a process is killed in, each with what it needs before it.

use headcount::{Engine, EngineStats, Frontend, Permit, Publisher, Request, Table};

/// One operation of a process that may be killed at any instruction of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Route,
    Finish,
    RouteWithTokens,
    FinishWithTokens,
    RouteMany,
    Publish,
    Join,
    Leave,
    Reap,
    AddEngine,
    RemoveEngine,
    Drain,
    SetCaps,
}

pub(crate) const ALL: [Operation; 13] = [
    Operation::Route,
    Operation::Finish,
    Operation::RouteWithTokens,
    Operation::FinishWithTokens,
    Operation::RouteMany,
    Operation::Publish,
    Operation::Join,
    Operation::Leave,
    Operation::Reap,
    Operation::AddEngine,
    Operation::RemoveEngine,
    Operation::Drain,
    Operation::SetCaps,
];

/// What a process has when it comes to its operation.
pub(crate) struct Prepared {
    table: Table,
    frontend: Option<Frontend>,
    permits: Vec<Permit>,
    publisher: Option<Publisher>,
}

/// The statistics that are published.
pub(crate) const STATS: EngineStats = EngineStats {
    waiting: 7,
    running: 7,
    kv_usage: 0.25,
    in_flight: Some(7),
};

impl Operation {
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// Joins and so on, in the process that is to be killed.
    pub(crate) fn prepare(self, table: &Table) -> Prepared {
        let joins = !matches!(self, Self::Join | Self::Reap | Self::Publish);
        let frontend = joins.then(|| table.join().expect("joins"));
        let permits = match (self, &frontend) {
            (Self::Finish, Some(frontend)) => frontend.route_many(1).expect("routes"),
            (Self::FinishWithTokens, Some(frontend)) => {
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
        }
    }

    /// The operation itself. What it makes is leaked: the process is killed right after it.
    pub(crate) fn perform(self, prepared: Prepared) {
        let Prepared {
            table,
            frontend,
            permits,
            publisher,
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
            Self::Finish | Self::FinishWithTokens => drop(permits),
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
            Self::AddEngine => std::mem::forget(table.add(&Engine::named("third"))),
            Self::RemoveEngine => std::mem::forget(table.remove(1)),
            Self::Drain => std::mem::forget(table.drain(1)),
            Self::SetCaps => std::mem::forget(table.set_caps(1, Some(500), Some(5_000))),
        }
    }
}
