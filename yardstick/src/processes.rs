//! Processes that do the same at the same time.

use super::{MeasureError, Shared};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the processes wait for each other, so that they begin together.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared<AtomicU64>>);

impl Gate {
    /// Returns when `count` processes have called it.
    ///
    /// # Errors
    ///
    /// A sentence, if a process is missing after 20 seconds.
    pub fn wait(&self, count: usize) -> Result<(), MeasureError> {
        const LONG: Duration = Duration::from_secs(20);
        let arrived = &self.0[0];
        // Relaxed: processes meet here in time; what they measure has its own order.
        let before = arrived.fetch_add(1, Ordering::Relaxed);
        let all = (before / count as u64 + 1) * count as u64;
        let start = Instant::now();
        for attempt in 1_u64.. {
            if arrived.load(Ordering::Relaxed) >= all {
                break;
            }
            std::hint::spin_loop();
            // The missing process may need this very core.
            if attempt.is_multiple_of(512) {
                std::thread::yield_now();
            }
            if attempt.is_multiple_of(4096) && start.elapsed() > LONG {
                return Err(MeasureError(
                    "another process did not come to begin".to_owned(),
                ));
            }
        }
        Ok(())
    }
}

/// One of the processes, as it knows itself.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its number, from 0.
    pub index: usize,
    /// How many processes there are.
    pub count: usize,
    /// Where the processes begin together.
    pub gate: Gate,
    /// A time before the processes were started, the same for all.
    pub epoch: Instant,
}

/// What a process does when it is asked to.
pub trait Work {
    /// Does what the words ask for, and answers in words.
    ///
    /// # Errors
    ///
    /// A sentence, which [`Processes::ask`] returns.
    fn work(&mut self, asked: &[u64]) -> Result<Vec<u64>, MeasureError>;
}

impl<F: FnMut(&[u64]) -> Result<Vec<u64>, MeasureError>> Work for F {
    fn work(&mut self, asked: &[u64]) -> Result<Vec<u64>, MeasureError> {
        self(asked)
    }
}

impl Work for super::Contenders<'_> {
    fn work(&mut self, asked: &[u64]) -> Result<Vec<u64>, MeasureError> {
        self.run_slice(asked)
    }
}

/// Processes that were forked from this one, each on a core of its own if there are enough. Dropping this kills
/// them.
#[derive(Debug)]
pub struct Processes {
    children: Vec<Child>,
    pinned: bool,
}

#[derive(Debug)]
struct Child {
    pid: Pid,
    line: UnixStream,
}

impl Processes {
    /// Starts `count` processes. Each prepares by `set_up`, and then works when it is asked to.
    ///
    /// No other thread of this process may run, since the children are forked.
    ///
    /// # Errors
    ///
    /// A sentence, if the system refuses a process, or `set_up` fails in one of them.
    pub fn start<W: Work>(
        count: usize,
        set_up: impl Fn(Worker) -> Result<W, MeasureError>,
    ) -> Result<Self, MeasureError> {
        Self::start_on(&cores()?, count, set_up)
    }

    /// Starts a process that disturbs those of [`start`](Self::start) as little as possible: it gets the core that
    /// `start` uses last.
    ///
    /// # Errors
    ///
    /// As for `start`.
    pub fn start_beside<W: Work>(
        set_up: impl Fn(Worker) -> Result<W, MeasureError>,
    ) -> Result<Self, MeasureError> {
        let mut cores = cores()?;
        cores.reverse();
        Self::start_on(&cores, 1, set_up)
    }

    fn start_on<W: Work>(
        cores: &[usize],
        count: usize,
        set_up: impl Fn(Worker) -> Result<W, MeasureError>,
    ) -> Result<Self, MeasureError> {
        let gate = Gate(Arc::new(Shared::new(1, |_| AtomicU64::new(0))?));
        let epoch = Instant::now();
        let mut processes = Self {
            children: Vec::new(),
            pinned: count <= cores.len(),
        };
        for index in 0..count {
            let (ours, theirs) = UnixStream::pair()?;
            // SAFETY: one thread runs, so the child finds no lock held by a thread that it lacks.
            match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error().into()),
                0 => {
                    drop(ours);
                    // The lines of its elder siblings end with the parent, not with this child.
                    let elders = std::mem::take(&mut processes.children);
                    elders.into_iter().for_each(|elder| drop(elder.line));
                    let core = cores.get(index).copied().filter(|_| processes.pinned);
                    let gate = gate.clone();
                    let worker = Worker {
                        index,
                        count,
                        gate,
                        epoch,
                    };
                    serve(theirs, core, || set_up(worker))
                }
                pid => {
                    let pid = Pid::from_raw(pid)
                        .ok_or_else(|| MeasureError("a child without a number".to_owned()))?;
                    processes.children.push(Child { pid, line: ours });
                }
            }
        }
        for child in &mut processes.children {
            child.answer()?;
        }
        Ok(processes)
    }

    /// Whether each process has a core of its own.
    pub fn are_pinned(&self) -> bool {
        self.pinned
    }

    /// Asks all processes at once, and returns their answers.
    ///
    /// # Errors
    ///
    /// A sentence, if a process is gone, or what it was asked for fails.
    pub fn ask(&mut self, words: &[u64]) -> Result<Vec<Vec<u64>>, MeasureError> {
        for child in &mut self.children {
            send(&mut child.line, OK, &to_bytes(words))?;
        }
        self.children.iter_mut().map(Child::answer).collect()
    }

    /// Returns the pids.
    pub fn pids(&self) -> Vec<Pid> {
        self.children.iter().map(|child| child.pid).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &self.children {
            // A child that is gone already is as good as killed.
            let _ = kill_process(child.pid, Signal::KILL);
        }
        for child in &self.children {
            let _ = waitpid(Some(child.pid), WaitOptions::empty());
        }
    }
}

impl Child {
    fn answer(&mut self) -> Result<Vec<u64>, MeasureError> {
        let gone = |error| MeasureError(format!("a process that measured is gone: {error}"));
        match receive(&mut self.line).map_err(gone)? {
            (OK, bytes) => Ok(to_words(&bytes)),
            (_, reason) => Err(MeasureError(String::from_utf8_lossy(&reason).into_owned())),
        }
    }
}

/// The life of a child.
fn serve<W: Work>(
    mut line: UnixStream,
    core: Option<usize>,
    set_up: impl FnOnce() -> Result<W, MeasureError>,
) -> ! {
    let life = || -> io::Result<()> {
        let pinned = core.map_or(Ok(()), pin).map_err(MeasureError::from);
        let mut work = match pinned.and_then(|()| set_up()) {
            Ok(work) => work,
            Err(failed) => return send(&mut line, FAILED, failed.0.as_bytes()),
        };
        send(&mut line, OK, &[])?;
        loop {
            let (_, asked) = receive(&mut line)?;
            match work.work(&to_words(&asked)) {
                Ok(answer) => send(&mut line, OK, &to_bytes(&answer))?,
                Err(failed) => send(&mut line, FAILED, failed.0.as_bytes())?,
            }
        }
    };
    // The work ends when the line does. Not even a panic may return into what the parent was doing when it
    // forked.
    let _ = catch_unwind(AssertUnwindSafe(life));
    // SAFETY: ends the process without what its parent has registered for its own end.
    unsafe { libc::_exit(0) }
}

const OK: u8 = 0;
const FAILED: u8 = 1;

fn send(line: &mut UnixStream, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let mut message = vec![kind];
    message.extend((bytes.len() as u64).to_le_bytes());
    message.extend(bytes);
    line.write_all(&message)
}

fn receive(line: &mut UnixStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    line.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    line.read_exact(&mut bytes)?;
    Ok((kind, bytes))
}

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn to_words(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The cores that this process may use.
fn cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}
