//! The right to publish engine statistics.

use crate::argument::Words;
use crate::engine::AllStats;
use crate::error::OrRaise;
use crate::ready::Ready;
use crate::table::of_this_process;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The right to publish statistics to a table, which one process at a time has. From ``Table.publisher``.
///
/// The process gives it back by ``close()``, at the end of a ``with`` block, when this object is gone, or by its
/// death.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Publisher(Mutex<Option<headcount::Publisher>>, PathBuf);

impl Publisher {
    pub(crate) fn new(publisher: headcount::Publisher, table: &Path) -> Self {
        Self(Mutex::new(Some(publisher)), table.to_owned())
    }
}

#[pymethods]
impl Publisher {
    /// Publishes the statistics of the first engines, in the order of their numbers.
    ///
    /// Readers see the whole publication or the one before it, and never wait. ``words`` are two numbers of
    /// your own, 0 to 2**64 - 1, that are published with the statistics.
    ///
    /// Raises TooManyStatsError, KvUsageError, ForkedError, and ValueError after ``close``. Nothing is
    /// published then.
    #[pyo3(signature = (stats, words=Words([0, 0])), text_signature = "($self, stats, words=(0, 0))")]
    fn publish(&self, py: Python<'_>, stats: AllStats, words: Words) -> PyResult<()> {
        let mut publisher = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        publisher
            .as_mut()
            .ok_or_else(|| {
                PyValueError::new_err("this publisher was closed; ask the table for a new one")
            })?
            .publish_with(&stats.0, words.0)
            .or_raise(py)
    }

    /// Gives the right to publish back. A second call changes nothing.
    fn close(&self) {
        let publisher = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(publisher);
    }

    fn __repr__(&self) -> String {
        match self.0.try_lock().as_deref() {
            Ok(None) => "<headcount.Publisher closed>".to_owned(),
            _ => format!("<headcount.Publisher of {}>", self.1.display()),
        }
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
            "Publisher",
            "take the place of the publisher in the other process: `table.publisher()`",
        ))
    }
}
