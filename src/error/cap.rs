//! The caps that refuse requests.

use crate::algorithm::total::Full;
use std::fmt;

/// The cap that refused a request; in [`RouteError::Saturated`](crate::RouteError::Saturated) and [`Error::Saturated`](crate::Error::Saturated).
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

    /// The message of a refusal by this cap.
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
