//! One admitted request.

use crate::argument::Tokens;
use crate::error::OrRaise;
use crate::ready::Ready;
use crate::table::of_this_process;
use crate::view;
use headcount::EngineId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// One admitted request, counted until its permit is released.
///
/// ``release()`` or the end of a ``with`` block finishes the request; if neither is reached, the garbage
/// collector does. It is finished once, however often the permit is released. Any thread may release it. In a
/// forked child the permit is the parent's, and a release there changes nothing.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Permit {
    engine: EngineId,
    /// Written while `counted` is locked.
    tokens: AtomicU32,
    counted: Mutex<Option<headcount::Permit>>,
}

impl Permit {
    #[inline]
    pub(crate) fn new(permit: headcount::Permit) -> Self {
        Self {
            engine: permit.engine(),
            tokens: AtomicU32::new(permit.tokens()),
            counted: Mutex::new(Some(permit)),
        }
    }
}

#[pymethods]
impl Permit {
    /// The number of the engine that the request is to be sent to: an index into lists of your own.
    #[getter]
    #[inline]
    fn engine(&self) -> usize {
        self.engine.index()
    }

    /// The EngineId of that engine. It is equal to the number, and stays that engine's after the release.
    #[getter]
    fn engine_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view::id(py, self.engine)
    }

    /// The name of that engine. Raises ValueError after the release: the number may be another engine's then.
    #[getter]
    fn engine_name(&self) -> PyResult<String> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted
            .as_ref()
            .map(headcount::Permit::engine_name)
            .ok_or_else(|| {
                PyValueError::new_err("this permit was released; read the engine's name before")
            })
    }

    /// The tokens that are counted with the request.
    #[getter]
    #[inline]
    fn tokens(&self) -> u32 {
        // Relaxed: a number by itself.
        self.tokens.load(Ordering::Relaxed)
    }

    /// Changes the tokens that are counted with the request, in one atomic step: its output fills the KV cache, say.
    ///
    /// tokens: the new number, 0 to 2**32 - 1.
    ///
    /// Fewer tokens are always taken. If a cap leaves no room for more, it raises SaturatedError at once and the
    /// permit keeps its former number; the request goes on, and holds more than it counts. The state of the engine
    /// does not matter.
    ///
    /// Raises SaturatedError, ForkedError, and ValueError after the release.
    #[inline]
    fn set_tokens(&self, py: Python<'_>, tokens: Tokens) -> PyResult<()> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(permit) = counted.as_mut() else {
            return Err(PyValueError::new_err(
                "this permit was released, and counts no tokens any more",
            ));
        };
        let set = permit.set_tokens(tokens.0);
        // Relaxed: as in `tokens`.
        self.tokens.store(permit.tokens(), Ordering::Relaxed);
        // The error is made by code of Python's, which another thread may interrupt.
        drop(counted);
        set.or_raise(py)
    }

    /// Whether the request was finished.
    #[getter]
    fn released(&self) -> bool {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.is_none()
    }

    /// Finishes the request. A second call changes nothing.
    #[inline]
    fn release(&self) {
        let counted = self
            .counted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(counted);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.release();
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> Ready {
        Ready::new(py, Some(slf.into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> Ready {
        self.release();
        Ready::new(py, None)
    }

    fn __repr__(&self) -> String {
        let state = if self.released() {
            "released"
        } else {
            "counted"
        };
        format!(
            "<headcount.Permit engine={} tokens={} {state}>",
            self.engine.index(),
            self.tokens()
        )
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(of_this_process(
            "Permit",
            "send the number of its engine, and keep the permit here",
        ))
    }
}
