//! A thread that reaps in the background.

use crate::ready::Ready;
use crate::table::of_this_process;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A thread that reaps dead frontends at intervals. From ``Table.reap_every``.
///
/// It ends by ``stop()``, at the end of a ``with`` block, or when this object is gone.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Reaper(Mutex<Option<headcount::Reaper>>, PathBuf);

impl Reaper {
    pub(crate) fn new(reaper: headcount::Reaper, table: &Path) -> Self {
        Self(Mutex::new(Some(reaper)), table.to_owned())
    }
}

#[pymethods]
impl Reaper {
    /// The error of the last reap, or None; the thread tries again at the next interval. A table that does not
    /// lie at its path any more is an error here, too: see ``Table.path_state``.
    #[getter]
    fn last_error(&self) -> Option<String> {
        let reaper = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reaper.as_ref().and_then(headcount::Reaper::last_error)
    }

    /// Ends the thread. A second call changes nothing.
    fn stop(&self, py: Python<'_>) {
        let reaper = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(reaper));
    }

    fn __repr__(&self) -> String {
        match self.0.try_lock().as_deref() {
            Ok(None) => "<headcount.Reaper stopped>".to_owned(),
            _ => format!("<headcount.Reaper of {}>", self.1.display()),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.stop(py);
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> Ready {
        Ready::new(py, Some(slf.into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> Ready {
        self.stop(py);
        Ready::new(py, None)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(of_this_process(
            "Reaper",
            "start one in the other process: `table.reap_every(..)`",
        ))
    }
}
