//! The one deployment that a table serves.

use crate::ready::Ready;
use crate::table::{Opened, Table, of_this_process};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// The place of the one deployment that a table serves. From ``Table.deploy``.
///
/// It goes back by ``close()``, at the end of a ``with`` block, when this object is gone, or when the process
/// dies.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Deployment(Mutex<Option<headcount::Deployment>>, Opened);

impl Deployment {
    pub(crate) fn new(deployment: headcount::Deployment, opened: Opened) -> Self {
        Self(Mutex::new(Some(deployment)), opened)
    }
}

#[pymethods]
impl Deployment {
    /// The table that it serves. Not after ``close``.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let deployment = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let deployment = deployment.as_ref().ok_or_else(closed)?;
        Ok(Table(deployment.table().clone(), self.1))
    }

    /// Gives the place back. A second time changes nothing.
    fn close(&self) {
        let deployment = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(deployment);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> Ready {
        Ready::new(py, Some(slf.into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> Ready {
        self.close();
        Ready::new(py, None)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(of_this_process(
            "Deployment",
            "one process is a table's deployment",
        ))
    }
}

#[cold]
fn closed() -> PyErr {
    PyValueError::new_err("this deployment was closed; ask the table for a new one")
}
