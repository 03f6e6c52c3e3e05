//! Why a request was not placed.

use super::Cap;
use std::fmt;

/// Why a request was not placed; from [`Frontend::route`](crate::Frontend::route) and its siblings.
///
/// It fits into one register, so that a route returns its permit or this error in two. `?` makes an
/// [`Error`](crate::Error) of it.
///
/// ```
/// use headcount::RouteError;
///
/// /// The status of an HTTP answer.
/// fn status(error: RouteError) -> u16 {
///     match error {
///         RouteError::Saturated { passes: true, .. } | RouteError::Unavailable(_) => 503,
///         RouteError::Saturated { passes: false, .. } => 413,
///         _ => 500,
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RouteError {
    /// Every engine that could take the request is at its cap, or the table is at its own. Nothing was
    /// counted but the refusal, in [`View::refusals_total`](crate::View::refusals_total). From
    /// [`Permit::set_tokens`](crate::Permit::set_tokens): the engine of the request or the table has no room for so
    /// many tokens, and nothing was changed.
    ///
    /// If it `passes`, answer 503 with a `Retry-After`, or try again when a permit of yours was dropped. If
    /// it does not, answer 400 or 413: to try again never helps.
    #[error("{}", .cap.advice(*.passes))]
    Saturated {
        /// The cap that is in the way.
        cap: Cap,
        /// Whether waiting can help. `false`: the request, or the requests placed together, are larger than
        /// this cap allows even when nothing is in flight, on the engines that they may go to. Engines that
        /// are draining or down count among these, for they may come back.
        passes: bool,
    },

    /// No engine can take the request: each is down, draining, removed, or excluded by the request.
    #[error("{0}")]
    Unavailable(Unavailable),

    /// The table has no engine of the number that was pinned, or the engine of that id was removed.
    #[error("{}", no_such_engine(*.engine as usize, *.removed))]
    NoSuchEngine {
        /// The number that was given, or that the engine of that id had. 4,294,967,295 stands for that and
        /// more.
        engine: u32,
        /// Whether the engine was named by its [`EngineId`](crate::EngineId), so that it was there once. Its
        /// number may be another engine's now.
        removed: bool,
    },

    /// The frontend was made by another process, of which this one is a forked child. Nothing was counted.
    /// Call [`Table::join`](crate::Table::join) in the child.
    #[error("{FORKED}")]
    Forked,

    /// The request has a [class](crate::Request::class) that there is not.
    #[error("there is no class {class}; classes are 0, which is served first, to 3")]
    NoSuchClass {
        /// The class that was given.
        class: u8,
    },

    /// The name of the request's [tenant](crate::Request::tenant) is too long.
    #[error(
        "the tenant's name has {length} bytes, and may have {}; use a hash of it",
        crate::MAX_NAME_LEN
    )]
    TenantName {
        /// The bytes of the name that was given. 4,294,967,295 stands for that and more.
        length: u32,
    },

    /// The request's tenant has a [share](crate::Request::share) of 0, and would never be served.
    #[error(
        "a tenant's share cannot be 0; leave it at 1, or refuse the tenant's requests yourself"
    )]
    NoShare,
}

const _: () = assert!(size_of::<RouteError>() == size_of::<u64>());

pub(super) const FORKED: &str = "this frontend, publisher or deployment belongs to the process that this one was forked from; call `Table::join`, `Table::publisher` or `Table::deploy` in the child";

/// How many engines could not take a request, and why; in [`RouteError::Unavailable`].
///
/// Each count is at most 4,096.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unavailable([u8; 7]);

/// 0 (4) | engines 13 | down 13 | draining 13 | excluded 13.
const COUNT_BITS: u32 = 13;
const _: () = assert!(crate::shm::layout::MAX_ENGINES < 1 << COUNT_BITS);
const _: () = assert!(4 * COUNT_BITS <= 7 * u8::BITS);

impl Unavailable {
    pub(crate) fn new(engines: usize, down: usize, draining: usize, excluded: usize) -> Self {
        let counts = [engines, down, draining, excluded];
        let packed = counts
            .iter()
            .fold(0, |packed, count| (packed << COUNT_BITS) | *count as u64);
        let [.., a, b, c, d, e, f, g] = packed.to_be_bytes();
        Self([a, b, c, d, e, f, g])
    }

    fn count(self, from_the_end: u32) -> usize {
        let [a, b, c, d, e, f, g] = self.0;
        let packed = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
        (packed >> (from_the_end * COUNT_BITS)) as usize & ((1 << COUNT_BITS) - 1)
    }

    /// Returns how many engines were looked at: all of the table's, or the one that was pinned.
    pub fn engines(self) -> usize {
        self.count(3)
    }

    /// Returns how many of these are down.
    pub fn down(self) -> usize {
        self.count(2)
    }

    /// Returns how many of these are draining.
    pub fn draining(self) -> usize {
        self.count(1)
    }

    /// Returns how many of these are active but excluded by the request.
    pub fn excluded(self) -> usize {
        self.count(0)
    }
}

impl fmt::Debug for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unavailable")
            .field("engines", &self.engines())
            .field("down", &self.down())
            .field("draining", &self.draining())
            .field("excluded", &self.excluded())
            .finish()
    }
}

/// `none of the 4 engines takes this request: 2 are down, 1 is draining; ...`.
impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.engines() == 0 {
            let message = "the table has no engine; add one with `Table::add` or `Table::apply`";
            return f.write_str(message);
        }
        let count = |count: usize, is: &str, are: &str| match count {
            0 => None,
            1 => Some(format!("1 {is}")),
            count => Some(format!("{count} {are}")),
        };
        let why = [
            count(self.down(), "is down", "are down"),
            count(self.draining(), "is draining", "are draining"),
            count(
                self.excluded(),
                "is excluded by the request",
                "are excluded by the request",
            ),
        ];
        let why: Vec<_> = why.into_iter().flatten().collect();
        let advice = match (self.down() + self.draining(), self.excluded()) {
            // They have changed since.
            (0, 0) => "try again",
            (0, _) => "exclude fewer",
            (_, 0) => "bring one up with `Table::up`, or add one",
            _ => "bring one up with `Table::up`, add one, or exclude fewer",
        };
        match self.engines() {
            1 => f.write_str("the engine that this request may go to takes none")?,
            engines => write!(f, "none of the {engines} engines takes this request")?,
        }
        if !why.is_empty() {
            write!(f, ": {}", why.join(", "))?;
        }
        write!(f, "; {advice}")
    }
}

pub(super) fn no_such_engine(engine: usize, removed: bool) -> String {
    if removed {
        format!(
            "the engine that was number {engine} was removed, and nothing was done to another that may have its number; `Table::find` says whether there is one of its name again"
        )
    } else {
        format!(
            "there is no engine {engine} in this table; `Table::view` lists those that there are"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::layout::MAX_ENGINES;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_counts_are_kept_apart(
            engines in 0..=MAX_ENGINES,
            down in 0..=MAX_ENGINES,
            draining in 0..=MAX_ENGINES,
            excluded in 0..=MAX_ENGINES,
        ) {
            let why = Unavailable::new(engines, down, draining, excluded);
            let counts = [why.engines(), why.down(), why.draining(), why.excluded()];
            prop_assert_eq!(counts, [engines, down, draining, excluded]);
        }
    }
}
