//! The awaitable of an `async with` that has nothing to wait for.

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

/// An awaitable that has its result already.
#[pyclass(frozen)]
pub(crate) struct Ready(Py<PyAny>);

impl Ready {
    /// Returns an awaitable whose result is the object, or None.
    pub(crate) fn new(py: Python<'_>, result: Option<Py<PyAny>>) -> Self {
        Self(result.unwrap_or_else(|| py.None()))
    }
}

#[pymethods]
impl Ready {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<()> {
        // In a tuple: a result that is one itself stays one.
        Err(PyStopIteration::new_err((self.0.clone_ref(py),)))
    }
}
