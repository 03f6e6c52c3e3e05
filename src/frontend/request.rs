//! Requests: their cost, and their say in where they go.

use crate::algorithm::queue::order::{CLASSES, EngineSet};
use crate::error::RouteError;
use crate::table::engine_id::{EngineId, EngineSelector};
use crate::table::{MAX_NAME_LEN, Table};

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
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request<'a> {
    pub(crate) tokens: u32,
    pub(crate) class: u8,
    /// A hash of the tenant's name.
    pub(crate) tenant: Option<u64>,
    pub(crate) share: u32,
    /// What is wrong with the tenant's name.
    pub(crate) tenant_fault: Option<RouteError>,
    pub(crate) pin: Option<EngineSelector>,
    pub(crate) excluded: &'a [EngineId],
    pub(crate) preferred: Option<(EngineSelector, f64)>,
}

/// As [`Request::new`].
impl Default for Request<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Request<'a> {
    /// Returns a request of no tokens that may go anywhere, of class 0 and no tenant.
    #[inline]
    pub fn new() -> Self {
        Self {
            tokens: 0,
            class: 0,
            tenant: None,
            share: 1,
            tenant_fault: None,
            pin: None,
            excluded: &[],
            preferred: None,
        }
    }

    /// Sets how many tokens it costs, which are counted beside it until it finishes. Default: 0.
    pub fn tokens(mut self, tokens: u32) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets its class, 0 to 3. Requests of class 0 that wait are served first, then those of class 1, and so on. Default:
    /// 0. While a request waits, one of a later class gets no place that the first one could take, by
    /// [`route`](crate::Frontend::route) either. Nothing keeps a later class from waiting for as long as earlier ones
    /// come.
    ///
    /// A class above 3 is [`RouteError::NoSuchClass`] when the request is placed.
    pub fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }

    /// Names its tenant: the customer or the API key that it is for, of at most [`MAX_NAME_LEN`] bytes. Default: none.
    ///
    /// While requests of one class wait, tenants are served in proportion to their [shares](Self::share), whichever of
    /// them sends more: start-time fair queueing, over all processes. A tenant that is alone gets everything. Requests
    /// without a tenant are those of one more tenant. What is shared are requests, or tokens if the table was created with
    /// [`share_tokens`](crate::Options::share_tokens).
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Request, Table};
    /// use std::time::Duration;
    /// let table = Table::options().engines(1).max_waiting(100).memfd()?;
    /// let frontend = table.join()?;
    /// let request = Request::new().class(1).tenant("team-a").share(3);
    /// let permit = frontend.acquire(&request, Duration::from_secs(30))?;
    /// # Ok(()) }
    /// ```
    ///
    /// The table knows 508 pairs of a name and a class, by their hash: two that fall together are served as one. A request
    /// that gives up has used its tenant's turn, until no request of the class waits: then all tenants begin anew.
    ///
    /// A longer name is [`RouteError::TenantName`] when the request is placed.
    pub fn tenant(mut self, name: &str) -> Self {
        self.tenant_fault = (name.len() > MAX_NAME_LEN).then(|| RouteError::TenantName {
            length: u32::try_from(name.len()).unwrap_or(u32::MAX),
        });
        self.tenant = Some(hash_of(name));
        self
    }

    /// Sets the share of its tenant, compared with the shares of the others. Default: 1. A share of 0 is
    /// [`RouteError::NoShare`] when the request is placed.
    pub fn share(mut self, share: u32) -> Self {
        self.share = share;
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

    /// Fails if it cannot be placed anywhere at any time.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), RouteError> {
        if self.class == 0 && self.tenant.is_none() && self.share == 1 {
            return Ok(());
        }
        if usize::from(self.class) >= CLASSES {
            return Err(RouteError::NoSuchClass { class: self.class });
        }
        if self.share == 0 {
            return Err(RouteError::NoShare);
        }
        self.tenant_fault.map_or(Ok(()), Err)
    }

    /// The engines that it may go to, as other processes see them while it waits. An excluded engine that is not in the
    /// table keeps it from none.
    pub(crate) fn engine_set(&self, table: &Table) -> EngineSet {
        let max_engines = table.header().geometry.max_engines;
        let is_there =
            |id: &&EngineId| id.index() < max_engines && table.engines().id(id.index()) == **id;
        match self.pin {
            Some(engine) => EngineSet::one(engine.index()),
            None => {
                let excluded = self.excluded.iter().filter(is_there);
                EngineSet::all_but(excluded.map(|engine| engine.index()))
            }
        }
    }

    /// Whether it has no say in where it goes.
    #[inline]
    pub(crate) fn goes_anywhere(&self) -> bool {
        self.pin.is_none() && self.excluded.is_empty() && self.preferred.is_none()
    }
}

/// FNV-1a, so that all processes of a table have the same.
fn hash_of(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // Its lower bits are poor for short names.
    hash ^ (hash >> 32)
}
