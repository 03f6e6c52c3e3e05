//! Which cap refuses requests, and how many were refused.

use crate::algorithm::place::Full;
use crate::error::Error;
use crate::table::Table;
use std::fmt;

/// The cap that has refused a request; in [`Error::Saturated`].
///
/// Engines are looked at before the table, and requests before tokens. So `EngineTokens` means that an
/// engine had a place for the request but not for its tokens, and the two caps of the table are named only
/// if an engine had room for all of it. If a request is larger than a cap even when nothing is in flight,
/// that cap is named.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cap {
    /// [`Engine::max_in_flight`](crate::Engine::max_in_flight), of each engine that could take the
    /// request.
    EngineRequests,
    /// [`Engine::max_tokens`](crate::Engine::max_tokens), of each engine that had a place for the request.
    EngineTokens,
    /// [`Options::max_in_flight`](crate::Options::max_in_flight), of the table.
    TableRequests,
    /// [`Options::max_tokens`](crate::Options::max_tokens), of the table.
    TableTokens,
}

impl Cap {
    /// One word for it, as metrics have it: `engine_requests`, `engine_tokens`, `table_requests` or
    /// `table_tokens`.
    pub fn name(self) -> &'static str {
        match self {
            Self::EngineRequests => "engine_requests",
            Self::EngineTokens => "engine_tokens",
            Self::TableRequests => "table_requests",
            Self::TableTokens => "table_tokens",
        }
    }

    pub(crate) fn of_engine(full: Full) -> Self {
        match full {
            Full::Requests => Self::EngineRequests,
            Full::Tokens => Self::EngineTokens,
        }
    }

    pub(crate) fn of_table(full: Full) -> Self {
        match full {
            Full::Requests => Self::TableRequests,
            Full::Tokens => Self::TableTokens,
        }
    }

    /// What to tell the user who was refused by it.
    pub(crate) fn advice(self, passes: bool) -> &'static str {
        match (self, passes) {
            (Self::EngineRequests, true) => {
                "every engine that could take this request has as many in flight as its cap allows; try again when one finishes"
            }
            (Self::EngineTokens, true) => {
                "no engine that could take this request has room for its tokens below its cap; try again when other requests finish"
            }
            (Self::TableRequests, true) => {
                "as many requests are in flight as the table's cap allows; try again when one finishes"
            }
            (Self::TableTokens, true) => {
                "the table has no room for the tokens of this request below its cap; try again when other requests finish"
            }
            (Self::EngineRequests, false) => {
                "the engines that could take this never take so many requests at once, however little is in flight; ask for fewer, or raise `max_in_flight` of an engine"
            }
            (Self::EngineTokens, false) => {
                "no engine that could take this request ever takes so many tokens, however little is in flight; send fewer, or raise `max_tokens` of an engine"
            }
            (Self::TableRequests, false) => {
                "this table never takes so many requests at once, however little is in flight; ask for fewer, or raise the table's `max_in_flight`"
            }
            (Self::TableTokens, false) => {
                "this table never takes so many tokens, however little is in flight; send fewer, or raise the table's `max_tokens`"
            }
        }
    }
}

/// Its [`name`](Self::name).
impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many calls were refused since the table was created, by all frontends that it ever had; in a
/// [`View`](crate::View).
///
/// A call that is refused counts once, also one for several requests. A call that is made again counts
/// again if it is refused again. Each total only grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Refusals {
    /// Refused by [`Cap::EngineRequests`].
    pub engine_requests: u64,
    /// Refused by [`Cap::EngineTokens`].
    pub engine_tokens: u64,
    /// Refused by [`Cap::TableRequests`].
    pub table_requests: u64,
    /// Refused by [`Cap::TableTokens`].
    pub table_tokens: u64,
    /// Refused with [`Error::Unavailable`].
    pub unavailable: u64,
}

impl Refusals {
    /// What each total is called, and the total, in the order of the fields.
    pub fn by_reason(&self) -> [(&'static str, u64); 5] {
        [
            (Cap::EngineRequests.name(), self.engine_requests),
            (Cap::EngineTokens.name(), self.engine_tokens),
            (Cap::TableRequests.name(), self.table_requests),
            (Cap::TableTokens.name(), self.table_tokens),
            ("unavailable", self.unavailable),
        ]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        (self.by_reason().iter()).fold(0, |sum, (_, count)| sum.wrapping_add(*count))
    }
}

/// The place of an error's reason among the totals of a lane. `None`: it is no refusal.
pub(crate) fn reason_of(error: &Error) -> Option<usize> {
    match error {
        Error::Saturated { cap, .. } => Some(match cap {
            Cap::EngineRequests => 0,
            Cap::EngineTokens => 1,
            Cap::TableRequests => 2,
            Cap::TableTokens => 3,
        }),
        Error::Unavailable { .. } => Some(4),
        _ => None,
    }
}

impl Table {
    /// The calls that were refused, added up over all frontends that the table ever had.
    pub(crate) fn refusals(&self) -> Refusals {
        let [
            engine_requests,
            engine_tokens,
            table_requests,
            table_tokens,
            unavailable,
        ] = self.mapping().registry().refusals();
        Refusals {
            engine_requests,
            engine_tokens,
            table_requests,
            table_tokens,
            unavailable,
        }
    }
}
