//! Waiting for a place: the request, and a thread that waits.

use crate::argument::{Class, Prefer, Seconds, Share, Tenant, Tokens, Which};
use crate::error::OrRaise;
use crate::permit::Permit;
use headcount::{AcquireError, EngineId, Request};
use pyo3::intern;
use pyo3::prelude::*;
use std::time::Duration;

/// The arguments of `Frontend.acquire` and `acquire_async`.
pub(crate) struct Asked {
    pub(crate) timeout: Duration,
    pub(crate) tokens: Tokens,
    pub(crate) class: Class,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) share: Share,
    pub(crate) pin: Option<Which>,
    pub(crate) excluded: Vec<EngineId>,
    pub(crate) prefer: Option<Prefer>,
}

impl Asked {
    pub(crate) fn request(&self) -> Request<'_> {
        let mut request = Request::new()
            .tokens(self.tokens.0)
            .class(self.class.0)
            .share(self.share.0)
            .exclude(&self.excluded);
        if let Some(tenant) = &self.tenant {
            request = request.tenant(&tenant.0);
        }
        if let Some(engine) = self.pin {
            request = request.pin(engine);
        }
        if let Some(Prefer(engine, slack)) = self.prefer {
            request = request.prefer(engine, slack);
        }
        request
    }
}

/// For how long a request waits; for ever if the argument is `None`.
pub(crate) fn timeout(seconds: Option<Seconds>) -> PyResult<Duration> {
    seconds.map_or(Ok(Duration::MAX), |seconds| seconds.duration("timeout"))
}

/// Waits for a place in this thread, while other threads run.
pub(crate) fn acquire(
    py: Python<'_>,
    frontend: &headcount::Frontend,
    asked: &Asked,
) -> PyResult<Permit> {
    let request = asked.request();
    // First without handing over the interpreter's lock: most find a place at once.
    let mut placed = frontend.acquire(&request, Duration::ZERO);
    if matches!(placed, Err(AcquireError::WaitedTooLong { .. })) && !asked.timeout.is_zero() {
        let mut signals = Signals::of_this_thread(py)?;
        placed = py
            .detach(|| frontend.acquire_while(&request, asked.timeout, || signals.let_it_go_on()));
        if let Some(raised) = signals.raised {
            return Err(raised);
        }
    }
    placed.map(Permit::new).or_raise(py)
}

/// Python's signal handlers, which run in its main thread only.
struct Signals {
    run_here: bool,
    raised: Option<PyErr>,
}

impl Signals {
    fn of_this_thread(py: Python<'_>) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let main = threading
            .call_method0(intern!(py, "main_thread"))?
            .getattr(intern!(py, "ident"))?;
        let this = threading.call_method0(intern!(py, "get_ident"))?;
        Ok(Self {
            run_here: main.eq(this)?,
            raised: None,
        })
    }

    /// Runs the handlers of signals that have come, and returns whether none has raised an exception. Any other thread
    /// goes on without the interpreter's lock, for which it might have to wait.
    fn let_it_go_on(&mut self) -> bool {
        if self.run_here {
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        self.raised.is_none()
    }
}
