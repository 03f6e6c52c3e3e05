//! The handle of one admitted request.

use crate::ready::Ready;
use crate::table::of_this_process;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// One admitted request, counted until it is released.
///
/// ``release()`` or the end of a ``with`` block finishes it; if neither is reached, the garbage
/// collector does. Only the first time counts. May be released from any thread. In a forked child it
/// is the parent's, and releasing it there changes nothing.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Permit {
    engine: u32,
    tokens: u32,
    counted: Mutex<Option<headcount::Permit>>,
}

impl Permit {
    #[inline]
    pub(crate) fn new(permit: headcount::Permit) -> Self {
        Self {
            engine: permit.engine().index() as u32,
            tokens: permit.tokens(),
            counted: Mutex::new(Some(permit)),
        }
    }
}

#[pymethods]
impl Permit {
    /// The number of the engine that the request is to be sent to.
    #[getter]
    #[inline]
    fn engine(&self) -> u32 {
        self.engine
    }

    /// The name of that engine. Not after the release: the number may be another engine's then.
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
        self.tokens
    }

    /// Whether the request was finished.
    #[getter]
    fn released(&self) -> bool {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.is_none()
    }

    /// Finishes the request. A second time changes nothing.
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
            self.engine, self.tokens
        )
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(of_this_process(
            "Permit",
            "send the number of its engine, and keep the permit here",
        ))
    }
}
