//! Lines for the operator on standard error, and the access log on standard output.
//!
//! Each stream has a thread that writes to it. So the process goes on when a reader has gone, and does not wait
//! for a reader that has stopped.

use headcount_metrics::printable;
use rustix::io::{Errno, write};
use std::collections::VecDeque;
use std::fmt::{Arguments, Display};
use std::io;
use std::os::fd::AsFd;
use std::process::id;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed}; // set by the thread that looks at it
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// How many lines wait to be written. More are left out, until half of these are written: so a reader that is a
/// little too slow sees one gap in hundreds of lines.
const WAITING: usize = 1024;
/// How long a process waits at its end for readers that take no line.
const UNREAD: Duration = Duration::from_secs(2);
/// How long a process waits at its end for readers in all.
pub(crate) const LAST_LINES: Duration = Duration::from_secs(5);
/// How long a process that is to end at once waits for readers that take no line.
const AT_ONCE: Duration = Duration::from_millis(200);
/// How soon to write again to a full stream that is `O_NONBLOCK`.
const AGAIN: Duration = Duration::from_millis(10);

static ERRORS: Stream = Stream::new("standard error");
static OUTPUT: Stream = Stream::new("standard output");
static IS_HURRIED: AtomicBool = AtomicBool::new(false);

/// Begins each line for the operator.
const PROGRAM: &str = "headcount-server: ";

/// Tells the operator what has happened: writes a line to standard error, behind the name of the program.
pub(crate) fn say(line: impl Display) {
    // Names of engines and arguments may have characters on which a terminal acts.
    ERRORS.push(&format_args!("{PROGRAM}{}", printable(&line.to_string())));
}

/// Writes a line that was asked for to standard output.
pub(crate) fn tell(line: impl Display) {
    OUTPUT.push(&line);
}

/// Makes the end of this process wait for readers only briefly.
pub(crate) fn hurry() {
    IS_HURRIED.store(true, Relaxed);
}

/// Returns when all lines are written, or their readers take none. Both streams share the time: a reader that
/// took nothing while this waited for the other one is not waited for again.
pub(crate) fn finish() {
    let start = Instant::now();
    let limits = if IS_HURRIED.load(Relaxed) {
        FinishLimits {
            start,
            unread: AT_ONCE,
            in_all: LAST_LINES,
        }
    } else {
        FinishLimits {
            start,
            unread: UNREAD,
            in_all: LAST_LINES,
        }
    };
    // Standard error says what is missing in standard output.
    let left = OUTPUT.finish(limits);
    if left > 0 {
        OUTPUT.report(format_args!(
            "the last {} left out: its reader does not read",
            lines(left)
        ));
    }
    ERRORS.finish(limits);
}

/// How long a process waits at its end for readers.
#[derive(Clone, Copy)]
struct FinishLimits {
    start: Instant,
    unread: Duration,
    in_all: Duration,
}

/// Standard output or standard error, with the lines that wait for its thread.
struct Stream {
    name: &'static str,
    queue: Mutex<Queue>,
    /// Signals that a line has come or was written.
    changed: Condvar,
    /// Whether the stream has its thread.
    has_thread: OnceLock<bool>,
}

struct Queue {
    entries: VecDeque<Entry>,
    /// Whether lines are left out.
    is_full: bool,
    /// Whether the thread is writing an entry that it has taken.
    is_writing: bool,
    /// When the thread last took a line, or a line came while none was waiting.
    progress: Option<Instant>,
}

enum Entry {
    Line(String),
    /// So many lines were left out here.
    Gap(u64),
}

impl Stream {
    const fn new(name: &'static str) -> Self {
        let queue = Queue {
            entries: VecDeque::new(),
            is_full: false,
            is_writing: false,
            progress: None,
        };
        Self {
            name,
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            has_thread: OnceLock::new(),
        }
    }

    /// Hands a line to the thread. Returns false if the line is left out.
    fn push(&'static self, line: &dyn Display) -> bool {
        let run = || self.run();
        let spawn = || Builder::new().name(self.name.to_owned()).spawn(run).is_ok();
        let has_thread = *self.has_thread.get_or_init(spawn);
        let line = format!("{line}\n");
        if !has_thread {
            // Without a thread it is better to wait than to write nothing.
            return self.write(&line).is_ok();
        }
        let is_kept = self.lock().push(line);
        self.changed.notify_all();
        is_kept
    }

    fn run(&'static self) {
        let (mut missing, mut is_failing) = (0, false);
        loop {
            let entry = self.take();
            match entry {
                Entry::Gap(lines) => missing += lines,
                Entry::Line(line) => match self.write(&line) {
                    Ok(()) => is_failing = false,
                    Err(error) => {
                        missing += 1;
                        if !is_failing {
                            is_failing = true;
                            self.report(format_args!("{error}; its lines are left out"));
                        }
                    }
                },
            }
            // While writing fails, the gap still grows.
            if missing > 0 && !is_failing {
                let lines = lines(missing);
                if self.report(format_args!("{lines} left out here: it was not read")) {
                    missing = 0;
                }
            }
            self.is_done();
        }
    }

    /// Reports on standard error what is missing in this stream.
    fn report(&'static self, what: Arguments<'_>) -> bool {
        let line = format!("{PROGRAM}process {}: {}: {what}", id(), self.name);
        if std::ptr::eq(self, &ERRORS) {
            self.write(&format!("{line}\n")).is_ok()
        } else {
            ERRORS.push(&line)
        }
    }

    /// Writes a line: a short one in one piece, since other processes write to the same stream.
    fn write(&self, line: &str) -> io::Result<()> {
        let mut left = line.as_bytes();
        while !left.is_empty() {
            let written = if std::ptr::eq(self, &ERRORS) {
                write(io::stderr().as_fd(), left)
            } else {
                write(io::stdout().as_fd(), left)
            };
            match written {
                Ok(length) => left = &left[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => sleep(AGAIN),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes the next entry, for the thread.
    fn take(&self) -> Entry {
        let mut queue = self.lock();
        loop {
            if let Some(entry) = queue.entries.pop_front() {
                queue.is_full &= queue.entries.len() > WAITING / 2;
                queue.is_writing = true;
                return entry;
            }
            let woken = self.changed.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_done(&self) {
        let mut queue = self.lock();
        queue.is_writing = false;
        queue.progress = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Waits until all is written or the reader takes nothing. Returns how many lines are left.
    fn finish(&self, limits: FinishLimits) -> u64 {
        let FinishLimits {
            start,
            unread,
            in_all,
        } = limits;
        let mut queue = self.lock();
        while queue.is_busy() {
            let progress = queue.progress.map_or(start, |at| at.max(start));
            let end = (progress + unread).min(start + in_all);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return queue.lines();
            }
            let woken = self.changed.wait_timeout(queue, left);
            (queue, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        0
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, line: String) -> bool {
        if !self.is_busy() {
            self.progress = Some(Instant::now());
        }
        self.is_full |= self.entries.len() >= WAITING;
        match self.entries.back_mut() {
            Some(Entry::Gap(lines)) if self.is_full => *lines += 1,
            _ if self.is_full => self.entries.push_back(Entry::Gap(1)),
            _ => self.entries.push_back(Entry::Line(line)),
        }
        !self.is_full
    }

    fn is_busy(&self) -> bool {
        self.is_writing || !self.entries.is_empty()
    }

    /// Returns how many lines wait or are left out.
    fn lines(&self) -> u64 {
        let waiting = self.entries.iter().map(|entry| match entry {
            Entry::Line(_) => 1,
            Entry::Gap(lines) => *lines,
        });
        waiting.sum::<u64>() + u64::from(self.is_writing)
    }
}

/// Writes a number of lines with its verb.
fn lines(number: u64) -> String {
    match number {
        1 => "1 line was".to_owned(),
        number => format!("{number} lines were"),
    }
}

/// Writes a number of requests.
pub(crate) fn requests(number: u64) -> String {
    match number {
        1 => "1 request".to_owned(),
        number => format!("{number} requests"),
    }
}
