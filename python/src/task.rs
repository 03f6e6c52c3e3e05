//! Waiting for a place under asyncio: the Rust half of `headcount/_waiting.py`.
//!
//! The thread that waits for all tasks never calls Python, and needs no lock of the interpreter: it writes a byte to a
//! socket that the event loop watches. So it cannot be held up by a thread that computes, nor hang when the interpreter
//! ends or the loop is closed, and no object of Python's is dropped by it.

use crate::error::OrRaise;
use crate::permit::Permit;
use crate::waiting::Asked;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::io::{Read, Write};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Returns the coroutine of `Frontend.acquire_async`.
pub(crate) fn coroutine<'py>(
    py: Python<'py>,
    frontend: headcount::Frontend,
    asked: Asked,
) -> PyResult<Bound<'py, PyAny>> {
    static ACQUIRED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let acquired = ACQUIRED.import(py, "headcount._waiting", "acquired")?;
    acquired.call1((Acquire(Mutex::new(Progress::New(frontend, asked))),))
}

/// A request of a task that waits for a place.
#[pyclass(frozen, name = "_Acquire", module = "headcount._native")]
pub(crate) struct Acquire(Mutex<Progress>);

enum Progress {
    New(headcount::Frontend, Asked),
    Waits(headcount::Acquire),
    Done,
}

#[pymethods]
impl Acquire {
    /// Returns the permit, or None if the request has no place yet: ``wakeups`` tells this number when to call again.
    fn poll(&self, py: Python<'_>, wakeups: &Wakeups, number: u64) -> PyResult<Option<Permit>> {
        let mut progress = locked(&self.0);
        let mut acquire = match mem::replace(&mut *progress, Progress::Done) {
            Progress::New(frontend, asked) => {
                frontend.acquire_async(&asked.request(), deadline(asked.timeout))
            }
            Progress::Waits(acquire) => acquire,
            Progress::Done => return Err(PyRuntimeError::new_err("this request is done")),
        };
        let waker = Waker::from(Arc::new(Task {
            number,
            woken: Arc::clone(&wakeups.woken),
        }));
        let polled = Pin::new(&mut acquire).poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Ready(placed) => placed.map(|permit| Some(Permit::new(permit))).or_raise(py),
            Poll::Pending => {
                *progress = Progress::Waits(acquire);
                Ok(None)
            }
        }
    }

    /// Leaves the queue. A place that the request has got meanwhile goes to the next one.
    fn close(&self) {
        let progress = mem::replace(&mut *locked(&self.0), Progress::Done);
        drop(progress);
    }
}

/// Tells an event loop which of its tasks are to be polled.
#[pyclass(frozen, name = "_Wakeups", module = "headcount._native")]
pub(crate) struct Wakeups {
    woken: Arc<Woken>,
}

#[pymethods]
impl Wakeups {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let woken = Arc::new(Woken {
            numbers: Mutex::default(),
            reader,
            writer,
        });
        Ok(Self { woken })
    }

    /// Returns the descriptor that is readable when a task is to be polled.
    fn fileno(&self) -> i32 {
        self.woken.reader.as_raw_fd()
    }

    /// Returns the numbers of the tasks that are to be polled since the last call.
    fn take(&self) -> Vec<u64> {
        // The byte before the numbers: for one that is added after them, another byte is written.
        let _ = (&self.woken.reader).read(&mut [0; 8]);
        mem::take(&mut *locked(&self.woken.numbers))
    }
}

/// The numbers of tasks that are to be polled.
struct Woken {
    numbers: Mutex<Vec<u64>>,
    /// Readable when there are some. It stays open with the other end, so that a byte can be written when the loop is gone.
    reader: UnixStream,
    writer: UnixStream,
}

/// A task of a loop.
struct Task {
    number: u64,
    woken: Arc<Woken>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let mut numbers = locked(&self.woken.numbers);
        numbers.push(self.number);
        let is_first = numbers.len() == 1;
        drop(numbers);
        if is_first {
            // It fails only if very many bytes are there already.
            let _ = (&self.woken.writer).write(&[1]);
        }
    }
}

/// When a request that begins to wait now gives up.
fn deadline(timeout: Duration) -> Instant {
    const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + FOR_EVER)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
