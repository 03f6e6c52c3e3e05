//! How many calls were refused, by reason.

use crate::error::{Cap, RouteError};
use crate::table::Table;

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
    /// Refused with [`RouteError::Unavailable`].
    pub unavailable: u64,
}

impl Refusals {
    /// Returns the name and the value of each total, in the order of the fields.
    pub fn by_reason(&self) -> [(&'static str, u64); 5] {
        [
            (Cap::EngineRequests.name(), self.engine_requests),
            (Cap::EngineTokens.name(), self.engine_tokens),
            (Cap::TableRequests.name(), self.table_requests),
            (Cap::TableTokens.name(), self.table_tokens),
            ("unavailable", self.unavailable),
        ]
    }

    /// Returns their sum.
    pub fn total(&self) -> u64 {
        (self.by_reason().iter()).fold(0, |sum, (_, count)| sum.wrapping_add(*count))
    }
}

/// The place of an error's reason among the totals of a lane. `None`: the call was not refused.
pub(crate) fn reason_of(error: RouteError) -> Option<usize> {
    match error {
        RouteError::Saturated { cap, .. } => Some(match cap {
            Cap::EngineRequests => 0,
            Cap::EngineTokens => 1,
            Cap::TableRequests => 2,
            Cap::TableTokens => 3,
        }),
        RouteError::Unavailable(_) => Some(4),
        RouteError::NoSuchEngine { .. }
        | RouteError::Forked
        | RouteError::NoSuchClass { .. }
        | RouteError::TenantName { .. }
        | RouteError::NoShare => None,
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
