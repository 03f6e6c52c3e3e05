//! This process's place in a table, where requests are routed.

use crate::argument::{Class, Count, Excluded, Prefer, Seconds, Share, Tenant, Tokens, Which};
use crate::error::OrRaise;
use crate::permit::Permit;
use crate::policy::Named;
use crate::ready::Ready;
use crate::table::{Opened, Table, of_this_process};
use crate::task;
use crate::waiting::{self, Asked};
use headcount::{EngineId, Request};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// This process's place in a table, with the policy by which it routes. From ``Table.join``.
///
/// Any thread and any asyncio task may use it: no call but ``acquire`` blocks. It leaves the table by ``close()``, at the end
/// of a ``with`` block, or when this object is gone. Permits that are still counted then keep the place until
/// the last of them is released. A process that dies without leaving stays in the table as a dead frontend
/// until the next reap. In a forked child, calls raise ``ForkedError``; join there anew.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Frontend {
    /// A `Place`, or `None` after `close`. It lies in a list because the interpreter guards that from other
    /// threads: a lock of Rust's would cost each request two locked instructions.
    place: Py<PyList>,
    opened: Opened,
}

/// The library's frontend, which this one has until it is closed. A call that is under way has it, too.
#[pyclass(frozen)]
struct Place(headcount::Frontend);

impl Frontend {
    pub(crate) fn new(
        py: Python<'_>,
        frontend: headcount::Frontend,
        opened: Opened,
    ) -> PyResult<Self> {
        let place = PyList::new(py, [Py::new(py, Place(frontend))?])?.unbind();
        Ok(Self { place, opened })
    }

    /// Calls `ask` with the library's frontend, unless this one was closed.
    #[inline]
    fn ask<T>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&headcount::Frontend) -> PyResult<T>,
    ) -> PyResult<T> {
        let place = self.place.bind(py).get_item(0)?;
        match place.cast_exact::<Place>() {
            Ok(place) => ask(&place.get().0),
            Err(_) => Err(closed()),
        }
    }
}

#[pymethods]
impl Frontend {
    /// Places a request on the least loaded engine and counts it there, in one atomic step. Returns its permit.
    ///
    /// tokens: how many tokens the request costs, counted beside it until it finishes; 0 to 2**32 - 1.
    /// pin: the only engine that will do. The request is counted there like any other.
    /// exclude: engines that will not do; those that have just failed, say.
    /// prefer: (engine, slack): that engine (a warm prefix cache, say), unless its load is more than slack above
    /// that of the least loaded engine.
    ///
    /// Each engine is given by its number, which means the engine that has it now, or by its EngineId, which
    /// means that very engine. An excluded or preferred engine that is gone is no error, since the request can
    /// go elsewhere.
    ///
    /// Raises SaturatedError, UnavailableError, NoSuchEngineError, ForkedError, and ValueError after ``close``.
    /// Nothing is counted then.
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
        self.ask(py, |frontend| {
            let excluded = excluded(exclude, frontend);
            let request = request(tokens, pin, &excluded, prefer);
            let permit = frontend.route_with(&request).map(Permit::new);
            permit.or_raise(py)
        })
    }

    /// Places ``count`` requests as that many calls of ``route`` would, or none. Returns their permits.
    ///
    /// Raises the errors of ``route``.
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
        self.ask(py, |frontend| {
            let excluded = excluded(exclude, frontend);
            let request = request(tokens, pin, &excluded, prefer);
            let permits = frontend.route_many_with(count.0, &request).or_raise(py)?;
            Ok(permits.into_iter().map(Permit::new).collect())
        })
    }

    /// Places a request as ``route`` does, and if there is no place for it, waits for one. Returns its permit.
    ///
    /// All processes of the table have one queue: see ``max_waiting`` of ``Table.open_or_create``. Of the requests that
    /// may use a place, that of the smallest class gets it, and within a class the one that began to wait first, or
    /// that of the tenant whose turn it is. While a request waits, a later one gets no place that it could take.
    ///
    /// Other threads run meanwhile. A signal handler of Python's that raises ends the wait, at most 50 ms later in the
    /// main thread: so does Ctrl-C. Under asyncio, use ``acquire_async``.
    ///
    /// timeout: for how many seconds it waits; 0 or more. With 0 it tries once. None, the default: for ever.
    /// tokens, pin, exclude, prefer: as in ``route``.
    /// class_: 0, the default, is served first, to 3. Later classes wait for as long as earlier ones come.
    /// tenant: the customer or the API key that it is for, of at most ``MAX_NAME_LEN`` bytes. While requests of one class
    /// wait, tenants are served in proportion to their shares, whichever sends more. None: one more tenant.
    /// share: the share of its tenant, 1 or more.
    ///
    /// Raises QueueFullError, WaitedTooLongError, NoQueueError, RequestError, and the errors of ``route``; but
    /// SaturatedError only if waiting cannot help. Nothing is counted then.
    #[pyo3(
        signature = (*, timeout=None, tokens=Tokens(0), class_=Class(0), tenant=None, share=Share(1), pin=None, exclude=None, prefer=None),
        text_signature = "($self, *, timeout=None, tokens=0, class_=0, tenant=None, share=1, pin=None, exclude=(), prefer=None)"
    )]
    #[allow(clippy::too_many_arguments)] // Python's, by their names
    fn acquire(
        &self,
        py: Python<'_>,
        timeout: Option<Seconds>,
        tokens: Tokens,
        class_: Class,
        tenant: Option<Tenant>,
        share: Share,
        pin: Option<Which>,
        exclude: Option<Excluded>,
        prefer: Option<Prefer>,
    ) -> PyResult<Permit> {
        self.ask(py, |frontend| {
            let asked = Asked {
                timeout: waiting::timeout(timeout)?,
                tokens,
                class: class_,
                tenant,
                share,
                pin,
                excluded: excluded(exclude, frontend),
                prefer,
            };
            waiting::acquire(py, frontend, &asked)
        })
    }

    /// Places a request as ``acquire`` does, while other tasks of the event loop run: ``await`` it. Returns its permit.
    ///
    /// Works on asyncio's loops and on uvloop's, from any number of tasks: one thread of the process waits for all tasks
    /// of a frontend. The request begins to wait when it is awaited, and the timeout runs from then.
    ///
    /// A task that is cancelled while it waits (``Task.cancel``, ``asyncio.timeout``, ``asyncio.wait_for``) leaves the queue
    /// at once. A place that it had got by then goes to the next request.
    ///
    /// Takes the arguments of ``acquire``. Raises its errors, and NoThreadError.
    #[pyo3(
        signature = (*, timeout=None, tokens=Tokens(0), class_=Class(0), tenant=None, share=Share(1), pin=None, exclude=None, prefer=None),
        text_signature = "($self, *, timeout=None, tokens=0, class_=0, tenant=None, share=1, pin=None, exclude=(), prefer=None)"
    )]
    #[allow(clippy::too_many_arguments)] // Python's, by their names
    fn acquire_async<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<Seconds>,
        tokens: Tokens,
        class_: Class,
        tenant: Option<Tenant>,
        share: Share,
        pin: Option<Which>,
        exclude: Option<Excluded>,
        prefer: Option<Prefer>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |frontend| {
            let asked = Asked {
                timeout: waiting::timeout(timeout)?,
                tokens,
                class: class_,
                tenant,
                share,
                pin,
                excluded: excluded(exclude, frontend),
                prefer,
            };
            task::coroutine(py, frontend.clone(), asked)
        })
    }

    /// Returns a frontend with the same place that routes by another policy; see ``Table.join``. The place
    /// stays taken until both were closed.
    #[pyo3(signature = (policy, stale_after=None))]
    fn with_policy(
        &self,
        py: Python<'_>,
        policy: Named,
        stale_after: Option<Seconds>,
    ) -> PyResult<Self> {
        let policy = policy.with_limit(stale_after)?;
        let frontend = self.ask(py, |frontend| Ok(frontend.clone()))?;
        Self::new(py, frontend.with_policy(policy), self.opened)
    }

    /// The table of this frontend. Raises ValueError after ``close``.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        let table = self.ask(py, |frontend| Ok(frontend.table().clone()))?;
        Ok(Table(table, self.opened))
    }

    /// The number of its place among the table's places for frontends. Raises ValueError after ``close``.
    #[getter]
    fn slot(&self, py: Python<'_>) -> PyResult<usize> {
        self.ask(py, |frontend| Ok(frontend.slot()))
    }

    /// Leaves the table. A second call changes nothing.
    ///
    /// Requests in flight stay counted until their permits are released; the last of these gives the place
    /// back. In a forked child the place is the parent's, and stays.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.place.bind(py).set_item(0, py.None())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> Ready {
        Ready::new(py, Some(slf.into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<Ready> {
        self.close(py)?;
        Ok(Ready::new(py, None))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let described = self.ask(py, |frontend| {
            let (path, slot) = (frontend.table().path().display(), frontend.slot());
            Ok(format!("<headcount.Frontend {slot} of {path}>"))
        });
        described.unwrap_or_else(|_| "<headcount.Frontend closed>".to_owned())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(of_this_process(
            "Frontend",
            "pickle its table, and join there",
        ))
    }
}

#[cold]
fn closed() -> PyErr {
    PyValueError::new_err("this frontend was closed; join its table anew: `table.join()`")
}

#[inline]
fn excluded(engines: Option<Excluded>, frontend: &headcount::Frontend) -> Vec<EngineId> {
    engines.map_or(Vec::new(), |engines| engines.in_table(frontend.table()))
}

#[inline]
fn request<'a>(
    tokens: Tokens,
    pin: Option<Which>,
    excluded: &'a [EngineId],
    prefer: Option<Prefer>,
) -> Request<'a> {
    let mut request = Request::new().tokens(tokens.0).exclude(excluded);
    if let Some(engine) = pin {
        request = request.pin(engine);
    }
    if let Some(Prefer(engine, slack)) = prefer {
        request = request.prefer(engine, slack);
    }
    request
}
