//! How a frontend chooses the engine for a request.

mod floor;
mod headcount;
mod overwrite;
mod scaled;
mod shared;

use std::fmt::{self, Debug, Display, Formatter};

use ::headcount::{Engine, Frontend, Policy, Table};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Serialize};

use self::floor::Floor;
use self::headcount::Headcount;
use self::overwrite::Overwrite;
use self::scaled::Scaled;
pub(crate) use self::shared::Counters;
use self::shared::Shared;
use crate::error::Error;
use crate::scratch::Places;
use crate::wire::{Request, Stats};

/// The strategies by name. The [crate documentation](crate) says where each comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Strategy {
    /// A private copy that every broadcast replaces (vLLM, mid-2025 to mid-2026)
    Overwrite,
    /// The own in-flight count times the number of frontends (vLLM since July 2026)
    Scaled,
    /// The own in-flight count as a floor under the broadcast (vLLM Rust frontend, mid-2026)
    Floor,
    /// One counter an engine in shared memory, which frontends add to and subtract from (nginx `zone`)
    Shared,
    /// One exact count for all frontends, in shared memory (this library)
    Headcount,
    /// The same, where a request that finds no place waits for one in the table's queue
    HeadcountQueue,
    /// The same, counting the tokens of the prompts instead of requests
    HeadcountTokens,
}

/// More than ever wait in the example.
const MAX_WAITING: u32 = 100_000;

/// A strategy at work in one frontend.
pub(crate) trait Choose: Debug {
    /// Chooses the engine for a request, and counts the request as sent to it. `None` if every engine is at
    /// its cap.
    fn choose(&mut self, request: &Request) -> Result<Option<usize>, Error>;

    /// The frontend by which a request waits for a place that found none. `None`: it is refused.
    fn queue(&self) -> Option<Frontend> {
        None
    }

    /// The engine has finished the request.
    fn finished(&mut self, id: u64, engine: usize);

    /// The coordinator's broadcast has arrived.
    fn broadcast(&mut self, stats: &[Stats]) -> Result<(), Error>;
}

/// Which frontend of how many this is, before how many engines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Seat {
    pub(crate) index: usize,
    pub(crate) frontends: u32,
    pub(crate) engines: usize,
    /// The most requests that an engine may have in flight.
    pub(crate) cap: Option<u32>,
    /// Whether requests wait that find no place.
    pub(crate) has_queue: bool,
    /// Whether the frontend tells when a request has its place.
    pub(crate) tells_places: bool,
}

impl Strategy {
    /// The strategy for one frontend.
    pub(crate) fn at(self, seat: Seat, places: &Places) -> Result<Box<dyn Choose>, Error> {
        Ok(match self {
            Self::Overwrite => Box::new(Overwrite::new(seat)),
            Self::Scaled => Box::new(Scaled::new(seat)),
            Self::Floor => Box::new(Floor::new(seat)),
            Self::Shared => Box::new(Shared::open(&places.counters(), seat)?),
            Self::Headcount | Self::HeadcountQueue => {
                Box::new(Headcount::join(places, seat, Policy::in_flight())?)
            }
            Self::HeadcountTokens => Box::new(Headcount::join(places, seat, Policy::tokens())?),
        })
    }

    /// Whether its frontends count in a table.
    pub(crate) fn shares_a_table(self) -> bool {
        matches!(
            self,
            Self::Headcount | Self::HeadcountQueue | Self::HeadcountTokens
        )
    }

    /// Whether it can hold a cap on requests.
    pub(crate) fn has_caps(self) -> bool {
        matches!(self, Self::Shared | Self::Headcount | Self::HeadcountQueue)
    }

    /// Whether a request that finds no place waits for one.
    pub(crate) fn has_queue(self) -> bool {
        self == Self::HeadcountQueue
    }
}

impl Display for Strategy {
    /// The name on the command line.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

impl Seat {
    /// What every process opens the table with.
    pub(crate) fn table_options(&self) -> ::headcount::Options {
        let options = match self.has_queue {
            true => Table::options().max_waiting(MAX_WAITING),
            false => Table::options(),
        };
        (0..self.engines).fold(options, |options, engine| {
            let engine = Engine::named(engine.to_string());
            options.engine(match self.cap {
                Some(cap) => engine.max_in_flight(cap),
                None => engine,
            })
        })
    }

    /// Where this frontend's scan begins: the frontends spread over the engines.
    fn scan_start(&self) -> usize {
        self.engines * self.index / self.frontends as usize % self.engines
    }
}

/// The engine with the lowest load; of several, the first from `start` on.
fn least_loaded(engines: usize, start: usize, load: impl Fn(usize) -> f64) -> usize {
    let scan = (start..engines).chain(0..start);
    scan.min_by(|&a, &b| load(a).total_cmp(&load(b)))
        .unwrap_or(start)
}
