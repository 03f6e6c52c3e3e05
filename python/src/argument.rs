//! Arguments of Python, checked. The error for a bad one says what a good one is.

use headcount::{EngineId, EngineSelector};
use pyo3::exceptions::{PyOSError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyMapping, PySequence, PyString};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Tokens of a request, or a cap.
#[derive(Clone, Copy)]
pub(crate) struct Tokens(pub(crate) u32);

/// An engine of a table, which need not be there.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// The engine that has this number now.
    Number(usize),
    /// The engine of this `headcount.EngineId`.
    Id(EngineId),
}

/// A class of requests. The library checks it.
#[derive(Clone, Copy)]
pub(crate) struct Class(pub(crate) u8);

/// How many requests wait at most, of each class that has a bound of its own.
pub(crate) struct OfClass(pub(crate) Vec<(Class, u32)>);

/// The share of a tenant. The library checks it.
#[derive(Clone, Copy)]
pub(crate) struct Share(pub(crate) u32);

/// The name of a tenant. The library checks it.
pub(crate) struct Tenant(pub(crate) String);

/// A count of engines, frontends, threads or requests.
#[derive(Clone, Copy)]
pub(crate) struct Count(pub(crate) usize);

/// The name of an engine.
pub(crate) struct Name(pub(crate) String);

/// True or False, for `any_owner`.
#[derive(Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

/// A length of time in seconds, not checked yet.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(f64);

/// An engine's weight. The table checks it.
#[derive(Clone, Copy)]
pub(crate) struct Weight(pub(crate) f32);

/// The number of a descriptor, which need not be open.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor(i64);

/// The engine that a request prefers, and the slack.
#[derive(Clone, Copy)]
pub(crate) struct Prefer(pub(crate) Which, pub(crate) f64);

/// The new value of a cap.
#[derive(Clone, Copy)]
pub(crate) enum Cap {
    /// The cap was not given, and stays.
    Stays,
    /// The cap. `None`: no cap.
    Is(Option<u32>),
}

/// The engines that a request excludes. Allocates nothing if there are none.
pub(crate) struct Excluded(Vec<Which>);

/// Two numbers of a publisher's own.
#[derive(Clone, Copy)]
pub(crate) struct Words(pub(crate) [u64; 2]);

/// Permission bits of a file. The table checks them.
#[derive(Clone, Copy)]
pub(crate) struct Mode(pub(crate) u32);

impl<'py> FromPyObject<'_, 'py> for Tokens {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole(object, "a number of tokens or a cap").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Which {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // An id has a number, too.
        let number =
            whole(object, "an engine's number").map_err(|error| no_engine(error, &object))?;
        if object.is_exact_instance_of::<PyInt>() {
            return Ok(Self::Number(number));
        }
        Ok(
            match object.getattr_opt(intern!(object.py(), "generation"))? {
                Some(generation) => {
                    let generation = word(&generation, "the generation of an engine's id")?;
                    Self::Id(EngineId::new(number, generation))
                }
                None => Self::Number(number),
            },
        )
    }
}

impl From<Which> for EngineSelector {
    #[inline]
    fn from(engine: Which) -> Self {
        match engine {
            Which::Number(number) => number.into(),
            Which::Id(id) => id.into(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Class {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBool>() {
            return Err(must_be("a class", "a whole number", &object));
        }
        object.extract().map(Self).map_err(|error: PyErr| {
            if !error.is_instance_of::<PyOverflowError>(object.py()) {
                return must_be("a class", "a whole number", &object);
            }
            PyValueError::new_err(format!(
                "there is no class {}; classes are 0, which is served first, to 3",
                shown(&object)
            ))
        })
    }
}

impl<'py> FromPyObject<'_, 'py> for OfClass {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(bounds) = object.cast::<PyMapping>() else {
            let what = "a bound for each class that has one, as in {3: 100}";
            return Err(must_be("max_waiting_of_class", what, &object));
        };
        let bound = |item: Bound<'py, PyAny>| {
            let (class, requests): (_, Bound<'_, PyAny>) = item.extract()?;
            let requests = whole(requests.as_borrowed(), "a number of requests")?;
            Ok((class, requests))
        };
        (bounds.items()?.iter().map(bound))
            .collect::<PyResult<_>>()
            .map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Share {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole(object, "a tenant's share").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Tenant {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        text(&object, "a tenant's name", "a str").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole(object, "a count").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        text(&object, "an engine's name", "a str").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Flag {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        flag(&object, "any_owner").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        real(&object, "a time in seconds").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Weight {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        real(&object, "an engine's weight").map(|weight| Self(weight as f32))
    }
}

impl<'py> FromPyObject<'_, 'py> for Descriptor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole(object, "a descriptor").map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Prefer {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Some([engine, slack]) = pair(&object) else {
            return Err(must_be(
                "prefer",
                "an engine and a slack, as in (0, 8.0)",
                &object,
            ));
        };
        Ok(Self(engine.extract()?, real(&slack, "the slack")?))
    }
}

impl<'py> FromPyObject<'_, 'py> for Cap {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is(object.py().Ellipsis()) {
            return Ok(Self::Stays);
        }
        let cap: Option<Tokens> = object.extract()?;
        Ok(Self::Is(cap.map(|Tokens(cap)| cap)))
    }
}

impl<'py> FromPyObject<'_, 'py> for Excluded {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let engines = match object.is_instance_of::<PyString>() {
            false => object.try_iter().ok(),
            true => None,
        };
        engines
            .ok_or_else(|| {
                must_be(
                    "exclude",
                    "engines by their numbers or ids, as in [0, 2]",
                    &object,
                )
            })?
            .map(|engine| engine?.extract())
            .collect::<PyResult<_>>()
            .map(Self)
    }
}

impl Excluded {
    /// Returns the ids of the engines in a table. A number means the engine that has it now; one that no engine
    /// has is left out, since no request can go there.
    #[inline]
    pub(crate) fn in_table(self, table: &headcount::Table) -> Vec<EngineId> {
        let id = |engine| match engine {
            Which::Number(number) => table.engine_at(number),
            Which::Id(id) => Some(id),
        };
        self.0.into_iter().filter_map(id).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for Words {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Some(words) = pair(&object) else {
            return Err(must_be("words", "two whole numbers, as in (7, 1)", &object));
        };
        let word = |object| word(object, "one of the words");
        Ok(Self([word(&words[0])?, word(&words[1])?]))
    }
}

impl<'py> FromPyObject<'_, 'py> for Mode {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole(object, "permission bits").map(Self)
    }
}

/// Returns a whole number. True and False are none.
#[inline]
pub(crate) fn whole<'a, 'py, T>(object: Borrowed<'a, 'py, PyAny>, what: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    if object.is_instance_of::<PyBool>() {
        return Err(must_be(what, "a whole number", &object));
    }
    object
        .extract()
        .map_err(|error| refused(error, &object, what))
}

/// Returns a whole number of 64 bits.
fn word(object: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    object.extract().map_err(|error: PyErr| {
        if !error.is_instance_of::<PyOverflowError>(object.py()) {
            return must_be(what, "a whole number", object);
        }
        let (found, most) = (shown(object), u64::MAX);
        PyValueError::new_err(format!("{found} cannot be {what}; use 0 to {most}"))
    })
}

/// Returns True or False. `name` is the argument's.
pub(crate) fn flag(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    let flag = object.extract();
    flag.map_err(|_: PyErr| must_be(name, "True or False", object))
}

/// Returns a number that need not be whole.
pub(crate) fn real(object: &Bound<'_, PyAny>, what: &str) -> PyResult<f64> {
    match object.is_instance_of::<PyBool>() {
        false => object.extract().ok(),
        true => None,
    }
    .ok_or_else(|| must_be(what, "a number", object))
}

/// Returns the text of a str. For one that cannot be written in UTF-8, the error is Python's own.
pub(crate) fn text(object: &Bound<'_, PyAny>, name: &str, what: &str) -> PyResult<String> {
    match object.is_instance_of::<PyString>() {
        true => object.extract(),
        false => Err(must_be(name, what, object)),
    }
}

/// Returns the object if it is a sequence, but not one of letters or bytes.
pub(crate) fn sequence<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
) -> Option<&'a Bound<'py, PySequence>> {
    let letters = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
    object.cast().ok().filter(|_| !letters)
}

/// Returns the items of a sequence of two.
fn pair<'py>(object: &Bound<'py, PyAny>) -> Option<[Bound<'py, PyAny>; 2]> {
    let items = sequence(object)?;
    (items.len().ok()? == 2).then_some(())?;
    Some([items.get_item(0).ok()?, items.get_item(1).ok()?])
}

/// The error for an argument of a wrong type.
#[cold]
pub(crate) fn must_be(name: &str, what: &str, found: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{name} must be {what}, not {}", shown(found)))
}

/// Returns the object as Python writes it, or its type if that is long.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 60;
    match object.repr() {
        Ok(text) if text.to_string_lossy().len() <= LONGEST => text.to_string(),
        _ => format!("an object of type {}", object.get_type()),
    }
}

/// The error for a number that was not taken. No count in a table needs more than 32 bits.
#[cold]
fn refused(error: PyErr, found: &Bound<'_, PyAny>, what: &str) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(found.py()) {
        PyValueError::new_err(format!("{found} cannot be {what}; use 0 to {}", u32::MAX))
    } else if error.is_instance_of::<PyTypeError>(found.py()) {
        must_be(what, "a whole number", found)
    } else {
        error
    }
}

/// The error for an object that names no engine.
#[cold]
fn no_engine(error: PyErr, found: &Bound<'_, PyAny>) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(found.py()) {
        return error;
    }
    let advice = match found.is_instance_of::<PyString>() {
        true => "; Table.find gives the id of a name",
        false => "",
    };
    PyTypeError::new_err(format!(
        "an engine of a table is its number or its headcount.EngineId, not {}{advice}",
        shown(found)
    ))
}

impl Seconds {
    /// Returns the length of time. `what` names the argument, for the error.
    pub(crate) fn duration(self, what: &str) -> PyResult<Duration> {
        Duration::try_from_secs_f64(self.0).map_err(|_| {
            let (seconds, most) = (self.0, u64::MAX as f64);
            PyValueError::new_err(format!(
                "{what} is {seconds:?}, but it must be a number of seconds, 0 or more and less than {most:e}"
            ))
        })
    }
}

const EBADF: i32 = 9; // of Linux, on all its processors

impl Descriptor {
    /// Returns a new descriptor on the file of the caller's descriptor.
    pub(crate) fn duplicate(self) -> PyResult<OwnedFd> {
        // By way of /proc: a number from Python may be no descriptor at all, and then this fails.
        let Self(fd) = self;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/self/fd/{fd}"))
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    PyOSError::new_err((EBADF, format!("{fd} is no open descriptor")))
                }
                _ => error.into(),
            })?;
        Ok(file.into())
    }
}
