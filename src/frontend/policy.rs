//! Policies: how load is computed from the counts and the snapshot.

use crate::error::Error;
use crate::publication::EngineStats;
use crate::table::EngineId;
use std::collections::HashMap;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How the load of an engine is computed. A request goes to the engine of the least load; of several,
/// to the one that this frontend has chosen least recently.
///
/// With every policy but [`Custom`](Self::Custom) a snapshot can raise an engine's load above its count, never
/// lower it, and a snapshot that is older than `stale_after` counts as absent. Loads are 32-bit floats: two that differ
/// by less than one part in eight million may count as equal.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Policy {
    /// `(in_flight + 1) / weight + min(waiting, in_flight) * 6 * max(0, kv_usage - 0.5)`.
    ///
    /// The default: the count is exact, and a queue on an engine whose KV cache is full drains slowly. The
    /// second term is that of vLLM's balancer, bounded by the count.
    #[non_exhaustive]
    InFlight {
        /// The oldest snapshot that counts.
        stale_after: Duration,
    },
    /// The same, plus `max(0, running + waiting - in_flight when the engine was sampled)`: traffic
    /// that does not pass this table.
    #[non_exhaustive]
    Open {
        /// The oldest snapshot that counts.
        stale_after: Duration,
    },
    /// `max(in_flight, running + waiting) + 3 * waiting`, whatever the weights are: as the vLLM Rust frontend of mid-2026, for
    /// comparison. After a burst has drained, the old snapshot hides new requests from it.
    #[non_exhaustive]
    Floor {
        /// The oldest snapshot that counts.
        stale_after: Duration,
    },
    /// `(tokens in flight + the request's) / weight`. Requests without tokens see no difference between
    /// engines that have none in flight, whatever their weights are.
    Tokens,
    /// One engine after the other, whatever the weights are: for comparison.
    RoundRobin,
    /// The one of less `(in_flight + 1) / weight` among two engines picked at random: for very many
    /// engines, since it does not look at them all, and for comparison. (Mitzenmacher, "The power of
    /// two choices in randomized load balancing", 2001.)
    PowerOfTwo,
    /// A load of one's own; see [`Policy::custom`].
    Custom(Load),
}

const DEFAULT_STALE_AFTER: Duration = Duration::from_secs(1);

impl Default for Policy {
    fn default() -> Self {
        Self::in_flight()
    }
}

impl Policy {
    /// [`Policy::InFlight`], with snapshots that count for one second.
    pub fn in_flight() -> Self {
        Self::InFlight {
            stale_after: DEFAULT_STALE_AFTER,
        }
    }

    /// [`Policy::Open`], with snapshots that count for one second.
    pub fn open() -> Self {
        Self::Open {
            stale_after: DEFAULT_STALE_AFTER,
        }
    }

    /// [`Policy::Floor`], with snapshots that count for one second.
    pub fn floor() -> Self {
        Self::Floor {
            stale_after: DEFAULT_STALE_AFTER,
        }
    }

    /// [`Policy::Tokens`].
    pub fn tokens() -> Self {
        Self::Tokens
    }

    /// [`Policy::RoundRobin`].
    pub fn round_robin() -> Self {
        Self::RoundRobin
    }

    /// [`Policy::PowerOfTwo`].
    pub fn power_of_two() -> Self {
        Self::PowerOfTwo
    }

    /// A load of one's own. It is called for each engine that may be chosen, at least once for each
    /// request and again when another process was faster, so it should be cheap. It may end permits and
    /// route by another policy; routing by itself would call it again, and again, and so would a change of
    /// the engines. If it forks, its `route` fails with [`RouteError::Forked`](crate::RouteError::Forked) in the child.
    /// An engine whose load is not a number comes last. After some twenty calls that were overtaken, the
    /// loads of the last ones decide.
    ///
    /// Its result is the load as it is. In particular,
    ///
    /// - weights are not applied: divide by [`weight`](Candidate::weight), or all engines get the same;
    /// - [`stale_after`](Self::stale_after) does not apply: `stats` may be of a publisher that died long ago, so
    ///   look at their [`age`](Candidate::age);
    /// - this request is not in `in_flight` yet: add one, or idle engines of different weights are equal;
    /// - nothing keeps statistics from making an engine look less loaded than it is, as S3 of docs/contract.md does for
    ///   the other policies.
    ///
    /// Caps, states and exclusions hold as with every policy: engines that may not be chosen are not asked
    /// for.
    ///
    /// ```
    /// use headcount::Policy;
    /// use std::time::Duration;
    /// // Twice the weight on what the engine says of itself, if it has said so of late.
    /// let policy = Policy::custom(|engine| {
    ///     let stats = engine.stats.filter(|_| engine.age < Duration::from_secs(1));
    ///     let waiting = stats.map_or(0, |stats| stats.waiting);
    ///     (f64::from(engine.in_flight) + 1.0 + 2.0 * f64::from(waiting)) / f64::from(engine.weight)
    /// });
    /// ```
    pub fn custom(load: impl Fn(&Candidate) -> f64 + Send + Sync + 'static) -> Self {
        Self::Custom(Load(Arc::new(load)))
    }

    /// The same policy with another limit on the age of snapshots. No effect on policies that do
    /// not read any, and on custom ones, which see the age.
    pub fn stale_after(mut self, limit: Duration) -> Self {
        match &mut self {
            Self::InFlight { stale_after }
            | Self::Open { stale_after }
            | Self::Floor { stale_after } => *stale_after = limit,
            Self::Tokens | Self::RoundRobin | Self::PowerOfTwo | Self::Custom(_) => {}
        }
        self
    }
}

/// The name of each policy that has one.
const NAMES: [&str; 6] = [
    "in_flight",
    "open",
    "floor",
    "tokens",
    "round_robin",
    "power_of_two",
];

/// Its name: `in_flight`, `open`, `floor`, `tokens`, `round_robin`, `power_of_two` or `custom`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InFlight { .. } => "in_flight",
            Self::Open { .. } => "open",
            Self::Floor { .. } => "floor",
            Self::Tokens => "tokens",
            Self::RoundRobin => "round_robin",
            Self::PowerOfTwo => "power_of_two",
            Self::Custom(_) => "custom",
        })
    }
}

/// A policy by its name, as [`Display`](fmt::Display) writes it; hyphens in the place of underscores will do. A
/// custom policy has no name that could be read.
///
/// ```
/// use headcount::Policy;
/// assert_eq!("in-flight".parse::<Policy>()?, Policy::in_flight());
/// # Ok::<(), headcount::Error>(())
/// ```
///
/// # Errors
/// [`Error::Policy`].
impl FromStr for Policy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name.replace('-', "_").as_str() {
            "in_flight" => Self::in_flight(),
            "open" => Self::open(),
            "floor" => Self::floor(),
            "tokens" => Self::tokens(),
            "round_robin" => Self::round_robin(),
            "power_of_two" => Self::power_of_two(),
            _ => {
                return Err(Error::Policy {
                    name: name.to_owned(),
                    known: &NAMES,
                });
            }
        })
    }
}

/// An engine that may take the request, as a [custom policy](Policy::custom) sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// Which engine it is.
    pub engine: EngineId,
    /// Its weight.
    pub weight: f32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Their tokens.
    pub tokens: u32,
    /// Its last published statistics, if there are any.
    pub stats: Option<EngineStats>,
    /// The age of `stats`; zero without.
    pub age: Duration,
}

/// The function of a [`Policy::Custom`]. It has no name outside of this crate: [`Policy::custom`] makes one.
#[derive(Clone)]
pub struct Load(pub(crate) Arc<dyn Fn(&Candidate) -> f64 + Send + Sync>);

impl Load {
    /// This load, for one request: it is asked for once an engine, and remembered.
    pub(crate) fn remembering(&self) -> Self {
        let load = Arc::clone(&self.0);
        let remembered = Mutex::new(HashMap::new());
        Self(Arc::new(move |engine| {
            // Not locked while the user's code runs. A panic there leaves nothing half-done.
            let known = || remembered.lock().unwrap_or_else(PoisonError::into_inner);
            let before = known().get(&engine.engine).copied();
            before.unwrap_or_else(|| {
                let asked = load(engine);
                known().insert(engine.engine, asked);
                asked
            })
        }))
    }
}

// A panic in the function can only break the state that its author keeps in it; nothing of ours is touched.
impl UnwindSafe for Load {}
impl RefUnwindSafe for Load {}

/// Two are equal if they are clones of one.
impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Load(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        for name in NAMES {
            let policy: Policy = name.parse().unwrap();
            assert_eq!(policy.to_string(), name);
            assert_eq!(name.replace('_', "-").parse::<Policy>().unwrap(), policy);
        }
        for name in ["", "custom", "In_flight", "in_flight "] {
            let error = name.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")), "{error}");
            assert!(error.contains("use in_flight, open"), "{error}");
        }
    }
}
