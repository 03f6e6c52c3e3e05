//! Requests: their cost, and their say in where they go.

use crate::table::engine_id::{EngineId, EngineSelector};

/// A request to be placed: how much it costs, and where it may or should go.
///
/// Free to make, and borrows the engines that it excludes.
///
/// ```
/// # fn main() -> Result<(), headcount::Error> {
/// use headcount::{Request, Table};
/// let table = Table::options().engines(4).memfd()?;
/// let frontend = table.join()?;
/// let first = frontend.route_with(&Request::new().tokens(900))?;
/// // The next one of this conversation: the engine has its prefix in its cache.
/// let warm = first.engine();
/// let second = frontend.route_with(&Request::new().tokens(40).prefer(warm, 2))?;
/// assert_eq!(second.engine(), warm);
/// # Ok(()) }
/// ```
#[must_use = "a request is placed by `route_with`"]
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Request<'a> {
    pub(crate) tokens: u32,
    pub(crate) pin: Option<EngineSelector>,
    pub(crate) excluded: &'a [EngineId],
    pub(crate) preferred: Option<(EngineSelector, f64)>,
}

impl<'a> Request<'a> {
    /// Returns a request of no tokens that may go anywhere.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many tokens it costs, which are counted beside it until it finishes. Default: 0.
    pub fn tokens(mut self, tokens: u32) -> Self {
        self.tokens = tokens;
        self
    }

    /// Lets it go to this engine only: the one that has this number when the engine is chosen, or the one of this
    /// [`EngineId`]. It is counted there like any other request.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Request, Table};
    /// let table = Table::options().engines(4).memfd()?;
    /// let frontend = table.join()?;
    /// let permit = frontend.route_with(&Request::new().pin(3))?;
    /// assert_eq!(permit.engine().index(), 3);
    /// # Ok(()) }
    /// ```
    pub fn pin(mut self, engine: impl Into<EngineSelector>) -> Self {
        self.pin = Some(engine.into());
        self
    }

    /// Keeps it from these engines: those that have just failed, say.
    pub fn exclude(mut self, engines: &'a [EngineId]) -> Self {
        self.excluded = engines;
        self
    }

    /// Prefers this engine (for its warm prefix cache, say), unless its load is more than `slack` above that of
    /// the least loaded engine, or it takes no requests. Loads are the policy's: with the default and
    /// without weights, requests in flight, this one included; with weights, `(in_flight + 1) / weight`.
    pub fn prefer(mut self, engine: impl Into<EngineSelector>, slack: impl Into<f64>) -> Self {
        self.preferred = Some((engine.into(), slack.into()));
        self
    }

    /// Whether it has no say in where it goes.
    #[inline]
    pub(crate) fn goes_anywhere(&self) -> bool {
        self.pin.is_none() && self.excluded.is_empty() && self.preferred.is_none()
    }
}
