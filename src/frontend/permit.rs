//! The handle of one admitted request.

use crate::error::RouteError;
use crate::frontend::lifetime::CountedRequest;
use crate::table::engine_id::EngineId;
use std::fmt;

/// One admitted request. Dropping it finishes the request, exactly once, on any thread and for any reason.
///
/// ```
/// # fn main() -> Result<(), headcount::Error> {
/// use headcount::Table;
/// let table = Table::options().engines(2).memfd()?;
/// let frontend = table.join()?;
/// let mut sent = vec![0; 2]; // of your own, an element for each engine
/// let permit = frontend.route()?;
/// sent[permit.engine().index()] += 1;
/// assert_eq!(permit.engine_name(), table.view().engines[permit.engine().index()].name);
/// drop(permit); // the answer has been sent, or its client has left
/// assert!(table.view().engines.iter().all(|engine| engine.in_flight == 0));
/// # Ok(()) }
/// ```
///
/// A permit keeps its frontend in the table, and its engine in its slot: [`engine`](Self::engine) is the same
/// for as long as the permit lives; a forked child's copy shows the engine that has the slot then. A permit that is leaked (`mem::forget`) stays counted until the process
/// ends.
///
/// Dropping costs one compare-and-swap if no other process interferes, no system call and no allocation. The
/// last permit of a frontend that has no clone left also leaves the table, by a few system calls.
#[must_use = "dropping a permit finishes its request"]
pub struct Permit(CountedRequest);

/// Both fit into two registers, in which a route returns them.
const _: () = assert!(size_of::<Option<Permit>>() == 2 * size_of::<u64>());
const _: () = assert!(size_of::<Result<Permit, RouteError>>() == 2 * size_of::<u64>());

impl Permit {
    #[inline]
    pub(crate) fn new(request: CountedRequest) -> Self {
        Self(request)
    }

    /// Returns the engine that the request was counted on, to be sent there: its [`index`](EngineId::index) into
    /// arrays of your own, and its identity. Costs two loads.
    #[inline]
    pub fn engine(&self) -> EngineId {
        // The slot has this engine for as long as the request is counted on it.
        self.0.membership().table().engines().id(self.0.engine())
    }

    /// Returns the name of that engine. Allocates.
    pub fn engine_name(&self) -> String {
        self.0.membership().table().engines().name(self.0.engine())
    }

    /// The tokens that are counted with the request.
    #[inline]
    pub fn tokens(&self) -> u32 {
        self.0.tokens()
    }

    /// Changes the tokens that are counted with the request: its output fills the KV cache, or its prompt turns out
    /// longer or shorter than was thought.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Engine, Request, RouteError, Table};
    /// let table = Table::options().engine(Engine::named("a").max_tokens(1000)).memfd()?;
    /// let frontend = table.join()?;
    /// let mut permit = frontend.route_with(&Request::new().tokens(900))?;
    /// permit.set_tokens(950)?; // 50 tokens of output
    /// assert_eq!(table.view().engines[0].tokens, 950);
    ///
    /// let refused = permit.set_tokens(1001);
    /// assert!(matches!(refused, Err(RouteError::Saturated { .. })));
    /// assert_eq!(permit.tokens(), 950);
    /// # Ok(()) }
    /// ```
    ///
    /// It is one atomic step on the engine that the request was counted on, also if that is draining, down or removed.
    /// Fewer tokens are always taken. More are refused if the engine's `max_tokens` or the table's leaves no room for
    /// them; then nothing changes. A request whose output goes on all the same holds more than it counts; try again
    /// with the next number. Such a refusal turns no request away, so no
    /// [total](crate::View::refusals_total) counts it.
    ///
    /// Costs as much as to drop the permit: one compare-and-swap if no other process interferes, no system call
    /// and no allocation. To add tokens under a cap of the table as a whole costs two more, and some loads for each
    /// engine. To set the number that it has changes nothing. If there is no room, it looks for dead frontends by
    /// system calls, at most a hundred times a second. To follow a stream of output, a call for every 16 tokens
    /// or so is enough.
    ///
    /// # Errors
    /// [`RouteError::Saturated`], whose `passes` says whether there would be room for the request with so many tokens
    /// if nothing else was in flight; [`RouteError::Forked`].
    pub fn set_tokens(&mut self, tokens: u32) -> Result<(), RouteError> {
        let set = self.0.set_tokens(tokens);
        let is_refused = matches!(set, Err(RouteError::Saturated { .. }));
        if is_refused && self.0.membership().reap_if_due() {
            return self.0.set_tokens(tokens);
        }
        set
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("engine", &self.engine())
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}
