//! This process's place in a table, where requests are routed.

use crate::argument::{Count, Excluded, Prefer, Seconds, Tokens, Which};
use crate::error::OrRaise;
use crate::permit::Permit;
use crate::policy::Named;
use crate::table::{Opened, Table, of_this_process};
use headcount::Request;
use pyo3::prelude::*;

/// This process's place in a table, with the policy by which it routes. From ``Table.join``.
///
/// May be used from any thread and from asyncio: nothing blocks. The place is given back when the
/// frontend and its last permit are gone, or when the process dies, whatever it dies of. In a forked
/// child its calls raise ``ForkedError``; join there anew.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Frontend(pub(crate) headcount::Frontend, pub(crate) Opened);

#[pymethods]
impl Frontend {
    /// Places a request on the least loaded engine and counts it there, in one atomic step.
    ///
    /// tokens: what it costs, counted beside it until it finishes; 0 to 2**32 - 1.
    /// pin: only this engine will do, by its number or its EngineId. Counted like any other.
    /// exclude: any engines but these; those that have just failed, say.
    /// prefer: (engine, slack): that engine (a warm prefix cache, say), unless its load is more than
    /// slack above that of the least loaded.
    ///
    /// An engine that is excluded or preferred may be gone by then: that is no error, since the request can go
    /// elsewhere. These two mean the engine that has the number, also if they are given an EngineId.
    ///
    /// Raises SaturatedError, UnavailableError, NoSuchEngineError, ForkedError. Nothing is counted then.
    #[inline]
    #[pyo3(
        signature = (tokens=Tokens(0), pin=None, exclude=None, prefer=None),
        text_signature = "($self, tokens=0, pin=None, exclude=(), prefer=None)"
    )]
    fn route(
        &self,
        py: Python<'_>,
        tokens: Tokens,
        pin: Option<Which>,
        exclude: Option<Excluded>,
        prefer: Option<Prefer>,
    ) -> PyResult<Permit> {
        let excluded = exclude.map_or(Vec::new(), |engines| engines.0);
        let request = request(tokens, pin, &excluded, prefer);
        self.0.route_with(&request).or_raise(py).map(Permit::new)
    }

    /// Places ``count`` requests as that many calls of ``route`` would, or none. Returns their permits.
    ///
    /// Raises as ``route``.
    #[pyo3(
        signature = (count, tokens=Tokens(0), pin=None, exclude=None, prefer=None),
        text_signature = "($self, count, tokens=0, pin=None, exclude=(), prefer=None)"
    )]
    fn route_many(
        &self,
        py: Python<'_>,
        count: Count,
        tokens: Tokens,
        pin: Option<Which>,
        exclude: Option<Excluded>,
        prefer: Option<Prefer>,
    ) -> PyResult<Vec<Permit>> {
        let excluded = exclude.map_or(Vec::new(), |engines| engines.0);
        let request = request(tokens, pin, &excluded, prefer);
        let permits = self.0.route_many_with(count.0, &request).or_raise(py)?;
        Ok(permits.into_iter().map(Permit::new).collect())
    }

    /// The same place, routing by another policy. See ``Table.join``.
    #[pyo3(signature = (policy, stale_after=None))]
    fn with_policy(&self, policy: Named, stale_after: Option<Seconds>) -> PyResult<Self> {
        let policy = policy.with_limit(stale_after)?;
        Ok(Self(self.0.clone().with_policy(policy), self.1))
    }

    /// The table that this is a place in.
    #[getter]
    fn table(&self) -> Table {
        Table(self.0.table().clone(), self.1)
    }

    /// Which of the table's places for frontends this is.
    #[getter]
    fn slot(&self) -> usize {
        self.0.slot()
    }

    fn __repr__(&self) -> String {
        let (path, slot) = (self.0.table().path().display(), self.0.slot());
        format!("<headcount.Frontend {slot} of {path}>")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(of_this_process(
            "Frontend",
            "pickle its table, and join there",
        ))
    }
}

#[inline]
fn request<'a>(
    tokens: Tokens,
    pin: Option<Which>,
    excluded: &'a [usize],
    prefer: Option<Prefer>,
) -> Request<'a> {
    let mut request = Request::new().tokens(tokens.0).exclude(excluded);
    if let Some(engine) = pin {
        request = request.pin(engine.0);
    }
    if let Some(Prefer(engine, slack)) = prefer {
        request = request.prefer(engine, slack);
    }
    request
}
