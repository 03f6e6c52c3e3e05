//! The library's errors as Python's exceptions, which `headcount/_errors.py` defines.

use headcount::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};
use std::path::Path;

/// The library's results as Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error's kind.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for headcount::Result<T> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}

/// An attribute of an exception.
enum Field<'a> {
    Number(u64),
    Real(f32),
    Truth(bool),
    Text(&'a str),
    Path(&'a Path),
}

#[cold]
fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|error| error)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static KINDS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let kinds = KINDS.get_or_try_init(py, || {
        PyModule::import(py, "headcount._errors").map(Bound::unbind)
    })?;
    let (kind, fields) = describe(error);
    let kind = kinds.bind(py).getattr(kind)?.cast_into::<PyType>()?;
    let exception = kind.call1((error.to_string(),))?;
    for (name, field) in fields {
        match field {
            Field::Number(number) => exception.setattr(name, number)?,
            Field::Real(number) => exception.setattr(name, number)?,
            Field::Truth(truth) => exception.setattr(name, truth)?,
            Field::Text(text) => exception.setattr(name, text)?,
            Field::Path(path) => exception.setattr(name, path)?,
        }
    }
    Ok(PyErr::from_value(exception))
}

/// The name of the error's kind, and what it says besides its message.
fn describe(error: &Error) -> (&'static str, Vec<(&'static str, Field<'_>)>) {
    use Field::{Number, Path, Real, Text, Truth};
    let number = |number: usize| Number(number as u64);
    match error {
        Error::Saturated { cap, passes } => (
            "Saturated",
            vec![("cap", Text(cap.name())), ("passes", Truth(*passes))],
        ),
        Error::Unavailable {
            engines,
            down,
            draining,
            excluded,
        } => (
            "Unavailable",
            vec![
                ("engines", number(*engines)),
                ("down", number(*down)),
                ("draining", number(*draining)),
                ("excluded", number(*excluded)),
            ],
        ),
        Error::NoSuchEngine { engine, removed } => (
            "NoSuchEngine",
            vec![("engine", number(*engine)), ("removed", Truth(*removed))],
        ),
        Error::Forked => ("Forked", vec![]),
        Error::FrontendsFull { max_frontends } => (
            "FrontendsFull",
            vec![("max_frontends", number(*max_frontends))],
        ),
        Error::PublisherHeld { pid } => ("PublisherHeld", vec![("pid", Number((*pid).into()))]),
        Error::TooManyStats { found, engines } => (
            "TooManyStats",
            vec![("found", number(*found)), ("engines", number(*engines))],
        ),
        Error::KvUsage { engine, found } => (
            "KvUsage",
            vec![("engine", number(*engine)), ("found", Real(*found))],
        ),
        Error::EnginesFull { max_engines } => {
            ("EnginesFull", vec![("max_engines", number(*max_engines))])
        }
        Error::EngineName { name, .. } => ("EngineName", vec![("name", Text(name))]),
        Error::NameTaken { name, engine } => (
            "NameTaken",
            vec![("name", Text(name)), ("engine", number(*engine))],
        ),
        Error::Weight { found } => ("Weight", vec![("found", Real(*found))]),
        Error::Deployed { path, pid } => (
            "Deployed",
            vec![("path", Path(path)), ("pid", Number((*pid).into()))],
        ),
        Error::Busy { pid } => ("Busy", vec![("pid", Number((*pid).into()))]),
        Error::Exists { path } => ("Exists", vec![("path", Path(path))]),
        Error::NotFound { path } => ("NotFound", vec![("path", Path(path))]),
        Error::Option { option, found, .. } => (
            "Option",
            vec![("option", Text(option)), ("found", Number(*found))],
        ),
        Error::Differs {
            path,
            option,
            found,
            asked,
        } => (
            "Differs",
            vec![
                ("path", Path(path)),
                ("option", Text(option)),
                ("found", Text(found)),
                ("asked", Text(asked)),
            ],
        ),
        Error::NoSpace { path, needed } => (
            "NoSpace",
            vec![("path", Path(path)), ("needed", Number(*needed))],
        ),
        Error::Symlink { path } => ("Symlink", vec![("path", Path(path))]),
        Error::NotATable { path, found } => (
            "NotATable",
            vec![("path", Path(path)), ("found", Text(found))],
        ),
        Error::Version { path, .. } => ("Version", vec![("path", Path(path))]),
        Error::Checksum { path, .. } => ("Checksum", vec![("path", Path(path))]),
        Error::Geometry { path, .. } => ("Geometry", vec![("path", Path(path))]),
        Error::Size { path, .. } => ("Size", vec![("path", Path(path))]),
        Error::Owner { path, .. } => ("Owner", vec![("path", Path(path))]),
        Error::Mode { path, .. } => ("Mode", vec![("path", Path(path))]),
        Error::ReadOnly => ("ReadOnly", vec![]),
        Error::Io { path, .. } => ("Io", vec![("path", Path(path))]),
        // A kind that this package does not know yet.
        _ => ("Error", vec![]),
    }
}
