//! How a table is to be created or opened, from keyword arguments.

use crate::argument::{Count, Mode, Tokens};
use crate::engine::Engines;
use headcount::{Options, Table};

/// The keyword arguments of `Table.create` and its like.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) engines: Option<Engines>,
    pub(crate) max_engines: Option<Count>,
    pub(crate) max_frontends: Option<Count>,
    pub(crate) lanes: Option<Count>,
    pub(crate) max_in_flight: Option<Tokens>,
    pub(crate) max_tokens: Option<Tokens>,
    pub(crate) mode: Option<Mode>,
    pub(crate) any_owner: bool,
}

impl From<Asked> for Options {
    fn from(asked: Asked) -> Self {
        let mut options = Table::options().any_owner(asked.any_owner);
        match asked.engines {
            Some(Engines::Numbered(Count(count))) => options = options.engines(count),
            Some(Engines::Listed(engines)) => {
                // An empty list says that there are none.
                options = options.engines(0);
                for engine in engines {
                    options = options.engine(engine.0);
                }
            }
            None => {}
        }
        if let Some(Count(count)) = asked.max_engines {
            options = options.max_engines(count);
        }
        if let Some(Count(count)) = asked.max_frontends {
            options = options.max_frontends(count);
        }
        if let Some(Count(count)) = asked.lanes {
            options = options.lanes(count);
        }
        if let Some(Tokens(cap)) = asked.max_in_flight {
            options = options.max_in_flight(cap);
        }
        if let Some(Tokens(cap)) = asked.max_tokens {
            options = options.max_tokens(cap);
        }
        if let Some(Mode(bits)) = asked.mode {
            options = options.mode(bits);
        }
        options
    }
}
