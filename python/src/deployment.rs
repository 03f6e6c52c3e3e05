//! The deployment lock of a table.

use crate::engine::Engines;
use crate::error::OrRaise;
use crate::options;
use crate::ready::Ready;
use crate::table::{Opened, Table, of_this_process};
use crate::view;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A table's deployment lock, which one process at a time has. From ``Table.deploy``.
///
/// The process gives it back by ``close()``, at the end of a ``with`` block, when this object is gone, or by its
/// death.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Deployment(Mutex<Option<headcount::Deployment>>, Opened, PathBuf);

impl Deployment {
    pub(crate) fn new(deployment: headcount::Deployment, opened: Opened) -> Self {
        let path = deployment.table().path().to_owned();
        Self(Mutex::new(Some(deployment)), opened, path)
    }
}

#[pymethods]
impl Deployment {
    /// The table of the deployment. Raises ValueError after ``close``.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let deployment = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let deployment = deployment.as_ref().ok_or_else(closed)?;
        Ok(Table(deployment.table().clone(), self.1))
    }

    /// Brings the table to these options, as ``Table.apply`` does for a process that is no deployment.
    ///
    /// Raises DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError, WeightError,
    /// BusyError, IoError, ForkedError, and ValueError after ``close``.
    #[pyo3(
        signature = (engines=None, **keywords),
        text_signature = "($self, engines=None, *, max_engines=None, max_frontends=None, threads=None, max_in_flight=None, max_tokens=None, max_waiting=None, max_waiting_of_class=None, share_tokens=None, mode=None)"
    )]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        engines: Option<Engines>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = options::at_path("Deployment.apply", engines, keywords)?;
        let changes = py.detach(|| {
            let deployment = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let deployment = deployment.as_ref().ok_or_else(closed)?;
            Ok::<_, PyErr>(deployment.apply(&options))
        })?;
        view::changes(py, &changes.or_raise(py)?)
    }

    fn __repr__(&self) -> String {
        match self.0.try_lock().as_deref() {
            Ok(None) => "<headcount.Deployment closed>".to_owned(),
            _ => format!("<headcount.Deployment of {}>", self.2.display()),
        }
    }

    /// Gives the lock back. A second call changes nothing.
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
