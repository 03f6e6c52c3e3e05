//! One table for all frontends: what this library is for.

use std::collections::HashMap;

use headcount::{EngineStats, Frontend, Permit, Policy, Publisher, RouteError, Table};

use super::{Choose, Seat};
use crate::error::Error;
use crate::scratch::Places;
use crate::wire::{Request, Stats};

#[derive(Debug)]
pub(super) struct Headcount {
    table: Table,
    frontend: Frontend,
    has_queue: bool,
    permits: HashMap<u64, Permit>,
    publisher: Option<Publisher>,
}

impl Headcount {
    pub(super) fn join(places: &Places, seat: Seat, policy: Policy) -> Result<Self, Error> {
        let table = seat.table_options().open_or_create(places.table())?;
        let frontend = table.join()?.with_policy(policy);
        Ok(Self {
            table,
            frontend,
            has_queue: seat.has_queue,
            permits: HashMap::new(),
            publisher: None,
        })
    }
}

impl Choose for Headcount {
    fn choose(&mut self, request: &Request) -> Result<Option<usize>, Error> {
        let tokens = headcount::Request::new().tokens(request.tokens);
        let permit = match self.frontend.route_with(&tokens) {
            Err(RouteError::Saturated { .. }) => return Ok(None),
            result => result?,
        };
        let engine = permit.engine().index();
        self.permits.insert(request.id, permit);
        Ok(Some(engine))
    }

    fn queue(&self) -> Option<Frontend> {
        self.has_queue.then(|| self.frontend.clone())
    }

    fn finished(&mut self, id: u64, _: usize) {
        self.permits.remove(&id);
    }

    /// Every frontend receives the broadcast, one publishes it. When that one dies, the next to ask
    /// is the publisher.
    fn broadcast(&mut self, stats: &[Stats]) -> Result<(), Error> {
        if self.publisher.is_none() {
            self.publisher = match self.table.publisher() {
                Ok(publisher) => Some(publisher),
                Err(headcount::Error::PublisherHeld { .. }) => None,
                Err(error) => return Err(error.into()),
            };
        }
        if let Some(publisher) = &mut self.publisher {
            let stats: Vec<_> = stats.iter().map(published).collect();
            publisher.publish(&stats)?;
        }
        Ok(())
    }
}

fn published(stats: &Stats) -> EngineStats {
    let Stats {
        waiting,
        running,
        kv_usage,
    } = *stats;
    EngineStats::new()
        .waiting(waiting)
        .running(running)
        .kv_usage(kv_usage)
}
