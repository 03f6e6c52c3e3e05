//! The library's errors as Python's exceptions, which `headcount/_errors.py` defines.

use crate::view;
use headcount::{AcquireError, Difference, Error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};
use std::path::Path;
use std::time::Duration;

/// The library's results as Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error's kind.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, error))
    }
}

/// An attribute of an exception.
enum Field<'a> {
    Number(u64),
    Real(f32),
    Seconds(Duration),
    Truth(bool),
    Text(&'a str),
    Names(&'static [&'static str]),
    Owned(String),
    /// `None`.
    Nothing,
    Differences(&'a [Difference]),
    Path(&'a Path),
}

#[cold]
fn raised(py: Python<'_>, error: impl Into<Error>) -> PyErr {
    exception(py, &error.into()).unwrap_or_else(|error| error)
}

/// Returns the module with the classes.
fn kinds(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static KINDS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let kinds = KINDS.get_or_try_init(py, || {
        PyModule::import(py, "headcount._errors").map(Bound::unbind)
    })?;
    Ok(kinds.bind(py))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let (kinds, (kind, fields)) = (kinds(py)?, describe(error));
    let kind = match error {
        Error::Io { source, .. } => kinds.call_method1("io", (source.raw_os_error(),))?,
        _ => kinds.getattr(kind)?,
    };
    made(&kind, message(error), fields)
}

/// Returns an exception of a class, with its attributes.
fn made(
    kind: &Bound<'_, PyAny>,
    message: String,
    fields: Vec<(&'static str, Field<'_>)>,
) -> PyResult<PyErr> {
    let py = kind.py();
    let exception = kind.cast::<PyType>()?.call1((message,))?;
    for (name, field) in fields {
        match field {
            Field::Number(number) => exception.setattr(name, number)?,
            Field::Real(number) => exception.setattr(name, number)?,
            Field::Seconds(time) => exception.setattr(name, time.as_secs_f64())?,
            Field::Truth(truth) => exception.setattr(name, truth)?,
            Field::Text(text) => exception.setattr(name, text)?,
            Field::Names(names) => exception.setattr(name, names.to_vec())?,
            Field::Owned(text) => exception.setattr(name, text)?,
            Field::Path(path) => exception.setattr(name, path)?,
            Field::Differences(all) => {
                exception.setattr(name, view::differences(py, all)?)?;
            }
            Field::Nothing => exception.setattr(name, py.None())?,
        }
    }
    Ok(PyErr::from_value(exception))
}

/// Returns the error's message, with Python's names for the parts of the library.
fn message(error: &Error) -> String {
    if let Error::Option {
        option: "mode",
        found,
        expected,
        ..
    } = error
    {
        let meant = u32::from_str_radix(&found.to_string(), 8);
        let advice = match meant {
            Ok(bits) if bits & 0o600 == 0o600 && bits <= 0o777 => {
                format!("did you mean {bits:#o}?")
            }
            _ => "write it in octal, as in 0o660".to_owned(),
        };
        return format!("mode is {found:#o}, but it must be {expected}; {advice}");
    }
    if let Error::Option {
        option: "engines",
        found: 0,
        ..
    } = error
    {
        return "a new table needs its engines, as in engines=4 or engines=[\"http://10.0.0.7:8000\"]; give \
                engines=0 if they come later, or use `Table.open` if another process creates it"
            .to_owned();
    }
    (error.to_string())
        .replace("`Table::", "`Table.")
        .replace("`any_owner(true)`", "`any_owner=True`")
}

/// Returns the name of the error's class, and its attributes.
fn describe(error: &Error) -> (&'static str, Vec<(&'static str, Field<'_>)>) {
    use Field::{Nothing, Number, Path, Real, Text, Truth};
    let number = |number: usize| Number(number as u64);
    match error {
        Error::Saturated { cap, passes, .. } => (
            "SaturatedError",
            vec![("cap", Text(cap.name())), ("passes", Truth(*passes))],
        ),
        Error::Unavailable(why) => (
            "UnavailableError",
            vec![
                ("engines", number(why.engines())),
                ("down", number(why.down())),
                ("draining", number(why.draining())),
                ("excluded", number(why.excluded())),
            ],
        ),
        Error::NoSuchEngine {
            engine, removed, ..
        } => (
            "NoSuchEngineError",
            vec![("engine", number(*engine)), ("removed", Truth(*removed))],
        ),
        Error::Forked => ("ForkedError", vec![]),
        Error::Request(_) => ("RequestError", vec![]),
        Error::Acquire(error) => describe_wait(error),
        Error::Policy { name, known, .. } => (
            "PolicyError",
            vec![("name", Text(name)), ("known", Field::Names(known))],
        ),
        Error::FrontendsFull { max_frontends, .. } => (
            "FrontendsFullError",
            vec![("max_frontends", number(*max_frontends))],
        ),
        Error::PublisherHeld { pid, .. } => {
            ("PublisherHeldError", vec![("pid", Number((*pid).into()))])
        }
        Error::TooManyStats { found, engines, .. } => (
            "TooManyStatsError",
            vec![("found", number(*found)), ("engines", number(*engines))],
        ),
        Error::KvUsage { engine, found, .. } => (
            "KvUsageError",
            vec![("engine", number(*engine)), ("found", Real(*found))],
        ),
        Error::EnginesFull { max_engines, .. } => (
            "EnginesFullError",
            vec![("max_engines", number(*max_engines))],
        ),
        Error::EngineName { name, .. } => ("EngineNameError", vec![("name", Text(name))]),
        Error::NameTaken { name, engine, .. } => (
            "NameTakenError",
            vec![("name", Text(name)), ("engine", number(*engine))],
        ),
        Error::Weight { found, .. } => ("WeightError", vec![("found", Real(*found))]),
        Error::Deployed { path, pid, .. } => (
            "DeployedError",
            vec![("path", Path(path)), ("pid", Number((*pid).into()))],
        ),
        Error::Busy { pid, .. } => ("BusyError", vec![("pid", Number((*pid).into()))]),
        Error::Exists { path, .. } => ("ExistsError", of_the_system(path, Some(EEXIST))),
        Error::NotFound { path, .. } => ("NotFoundError", of_the_system(path, Some(ENOENT))),
        Error::Option { option, found, .. } => (
            "OptionError",
            vec![("option", Text(option)), ("found", Number(*found))],
        ),
        Error::Differs {
            path, differences, ..
        } => {
            let all = Field::Differences(differences);
            let mut fields = vec![("path", Path(path)), ("differences", all)];
            if let Some(first) = differences.first() {
                fields.extend([
                    ("engine", first.engine.as_deref().map_or(Nothing, Text)),
                    ("option", Text(first.option)),
                    ("found", Text(&first.found)),
                    ("asked", Text(&first.asked)),
                ]);
            }
            ("DiffersError", fields)
        }
        Error::NoSpace { path, needed, .. } => {
            let mut fields = of_the_system(path, Some(ENOSPC));
            fields.push(("needed", Number(*needed)));
            ("NoSpaceError", fields)
        }
        Error::Symlink { path, .. } => ("SymlinkError", vec![("path", Path(path))]),
        Error::NotATable { path, found, .. } => (
            "NotATableError",
            vec![("path", Path(path)), ("found", Text(found))],
        ),
        Error::Version { path, .. } => ("VersionError", vec![("path", Path(path))]),
        Error::Checksum { path, .. } => ("ChecksumError", vec![("path", Path(path))]),
        Error::Geometry { path, .. } => ("GeometryError", vec![("path", Path(path))]),
        Error::Size { path, .. } => ("SizeError", vec![("path", Path(path))]),
        Error::Owner { path, .. } => ("OwnerError", of_the_system(path, Some(EACCES))),
        Error::Mode { path, .. } => ("ModeError", of_the_system(path, Some(EACCES))),
        Error::ReadOnly => ("ReadOnlyError", vec![]),
        Error::Io { path, source, .. } => ("IoError", of_the_system(path, source.raw_os_error())),
        // A variant that is newer than this package.
        _ => ("Error", vec![]),
    }
}

/// Returns the same for an error of the wait for a place.
fn describe_wait(error: &AcquireError) -> (&'static str, Vec<(&'static str, Field<'static>)>) {
    match *error {
        AcquireError::QueueFull { class, retry_after } => {
            let class = class.map_or(Field::Nothing, |class| Field::Number(class.into()));
            let retry_after = retry_after.map_or(Field::Nothing, Field::Seconds);
            let fields = vec![("class_", class), ("retry_after", retry_after)];
            ("QueueFullError", fields)
        }
        AcquireError::WaitedTooLong { waited } => (
            "WaitedTooLongError",
            vec![("waited", Field::Seconds(waited))],
        ),
        AcquireError::NoQueue => ("NoQueueError", vec![]),
        AcquireError::NoThread { errno } => (
            "NoThreadError",
            vec![("errno", Field::Number(errno as u64))],
        ),
        // `Route`, which is another `Error`; `Cancelled`, in whose place Python's own exception is raised; and variants
        // that are newer than this package.
        _ => ("Error", vec![]),
    }
}

/// Returns the attributes of an `OSError`.
fn of_the_system(path: &Path, errno: Option<i32>) -> Vec<(&'static str, Field<'_>)> {
    let filename = path.to_string_lossy().into_owned();
    let mut fields = vec![
        ("path", Field::Path(path)),
        ("filename", Field::Owned(filename)),
    ];
    if let Some(errno) = errno {
        let text = std::io::Error::from_raw_os_error(errno).to_string();
        let strerror = text.split(" (os error").next().unwrap_or_default();
        fields.push(("errno", Field::Number(errno as u64)));
        fields.push(("strerror", Field::Owned(strerror.to_owned())));
    }
    fields
}

// Of Linux, on all its processors.
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENOSPC: i32 = 28;
