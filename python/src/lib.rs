//! headcount for Python: the library's public types as Python classes.
//!
//! Calls that open, join, view, check or reap a table, and those that change its engines or caps, may wait or make
//! system calls: they let other threads run meanwhile. Routing, finishing, publishing and changes of an engine's state
//! keep the interpreter's lock: they take less time than to hand it over. A thread that waits for a place hands it over.

mod argument;
mod deployment;
mod engine;
mod error;
mod frontend;
mod options;
mod permit;
mod policy;
mod publisher;
mod ready;
mod reaper;
mod table;
mod task;
mod view;
mod waiting;

use pyo3::prelude::*;

/// The compiled half of `headcount`.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::deployment::Deployment;
    #[pymodule_export]
    use crate::frontend::Frontend;
    #[pymodule_export]
    use crate::permit::Permit;
    #[pymodule_export]
    use crate::publisher::Publisher;
    #[pymodule_export]
    use crate::reaper::Reaper;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::task::{Acquire, Wakeups};
    #[pymodule_export]
    const MAX_ENGINES: usize = headcount::MAX_ENGINES;
    #[pymodule_export]
    const MAX_FRONTENDS: usize = headcount::MAX_FRONTENDS;
    #[pymodule_export]
    const MAX_IN_FLIGHT: u32 = headcount::MAX_IN_FLIGHT;
    #[pymodule_export]
    const MAX_NAME_LEN: usize = headcount::MAX_NAME_LEN;
    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name for it
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("WAITED_BOUNDS", crate::view::waited_bounds(module.py())?)
    }
}
