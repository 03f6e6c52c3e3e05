//! The options of a table, from the arguments of `Table.create` and its like.

use crate::argument::{Class, Count, Mode, OfClass, Tokens, flag, whole};
use crate::engine::Engines;
use headcount::{Options, Table};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The name of a keyword argument, and how its value is set.
type Keyword = (
    &'static str,
    fn(Options, &Bound<'_, PyAny>) -> PyResult<Options>,
);

/// The options of a table that lies at a path. None as a value means that the option is not given.
const WITH_MODE: [Keyword; 9] = [
    ("max_engines", |options, value| {
        let Count(count) = value.extract()?;
        Ok(options.max_engines(count))
    }),
    ("max_frontends", |options, value| {
        let Count(count) = value.extract()?;
        Ok(options.max_frontends(count))
    }),
    ("threads", |options, value| {
        let Count(count) = value.extract()?;
        Ok(options.threads(count))
    }),
    ("max_in_flight", |options, value| {
        let Tokens(cap) = value.extract()?;
        Ok(options.max_in_flight(cap))
    }),
    ("max_tokens", |options, value| {
        let Tokens(cap) = value.extract()?;
        Ok(options.max_tokens(cap))
    }),
    ("max_waiting", |options, value| {
        let requests = whole(value.as_borrowed(), "a number of requests")?;
        Ok(options.max_waiting(requests))
    }),
    ("max_waiting_of_class", |options, value| {
        let OfClass(bounds) = value.extract()?;
        let bound = |options: Options, (Class(class), requests)| {
            options.max_waiting_of_class(class, requests)
        };
        Ok(bounds.into_iter().fold(options, bound))
    }),
    ("share_tokens", |options, value| {
        Ok(options.share_tokens(flag(value, "share_tokens")?))
    }),
    ("mode", |options, value| {
        let Mode(bits) = value.extract()?;
        Ok(options.mode(bits))
    }),
];

/// The options of a table without a path.
const WITHOUT_MODE: &[Keyword] = WITH_MODE.split_last().unwrap().1;

/// Returns the options that are asked of a table at a path. `method` names the method that was called, for errors.
pub(crate) fn at_path(
    method: &str,
    engines: Option<Engines>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Options> {
    options(method, &WITH_MODE, engines, keywords)
}

/// Returns the options that are asked of a table without a path.
pub(crate) fn without_path(
    method: &str,
    engines: Option<Engines>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Options> {
    options(method, WITHOUT_MODE, engines, keywords)
}

fn options(
    method: &str,
    known: &[Keyword],
    engines: Option<Engines>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Options> {
    let mut options = with_engines(Table::options(), engines);
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        let keyword = known.iter().find(|(known, _)| *known == name);
        let (_, set) = keyword.ok_or_else(|| unexpected(value.py(), method, &name))?;
        if !value.is_none() {
            options = set(options, &value).map_err(|error| noted(error, &value, &name))?;
        }
    }
    Ok(options)
}

fn with_engines(options: Options, engines: Option<Engines>) -> Options {
    match engines {
        Some(Engines::Numbered(Count(count))) => options.engines(count),
        Some(Engines::Listed(engines)) => {
            // An empty list says that there are none.
            let none = options.engines(0);
            (engines.into_iter()).fold(none, |options, engine| options.engine(engine.0))
        }
        None => options,
    }
}

/// The error for a keyword argument that a method does not have, in Python's words and with those that it has.
#[cold]
fn unexpected(py: Python<'_>, method: &str, name: &str) -> PyErr {
    let said = format!("{method}() got an unexpected keyword argument '{name}'");
    let signature = || -> PyResult<String> {
        let mut found = py.import("headcount._native")?.into_any();
        for part in method.split('.') {
            found = found.getattr(part)?;
        }
        found.getattr("__text_signature__")?.extract()
    };
    PyTypeError::new_err(match signature() {
        Ok(signature) => {
            let signature = signature.replace("$self, ", "");
            format!("{said}; its arguments are {signature}")
        }
        Err(_) => said,
    })
}

/// The error with a note that names the argument, as PyO3 adds one for the arguments that it knows.
#[cold]
fn noted(error: PyErr, value: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let py = value.py();
    let note = format!("while processing '{name}'");
    // Python 3.10 has no notes.
    let _ = error
        .value(py)
        .call_method1(intern!(py, "add_note"), (note,));
    error
}
