//! Processes that do what they are asked, all at once.

use super::{Failed, Shared};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the processes wait for each other, to begin at one moment.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared<AtomicU64>>);

impl Gate {
    /// Returns when `count` processes have called it.
    pub fn wait(&self, count: usize) -> Result<(), Failed> {
        const LONG: Duration = Duration::from_secs(20);
        let arrived = &self.0[0];
        // Relaxed: processes meet here in time; what they measure has its own order.
        let place = arrived.fetch_add(1, Ordering::Relaxed);
        let all = (place / count as u64 + 1) * count as u64;
        let start = Instant::now();
        for look in 1_u64.. {
            if arrived.load(Ordering::Relaxed) >= all {
                break;
            }
            std::hint::spin_loop();
            // Whoever is missing may need this very core.
            if look.is_multiple_of(512) {
                std::thread::yield_now();
            }
            if look.is_multiple_of(4096) && start.elapsed() > LONG {
                return Err(Failed("another process did not come to begin".to_owned()));
            }
        }
        Ok(())
    }
}

/// Which of the processes this one is.
#[derive(Clone, Debug)]
pub struct Place {
    /// From 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    /// Where they begin together.
    pub gate: Gate,
    /// A time before they were started, the same for all.
    pub epoch: Instant,
}

/// What a process does when it is asked.
pub trait Work {
    /// Does what was asked for in words, and answers in words.
    fn work(&mut self, asked: &[u64]) -> Result<Vec<u64>, Failed>;
}

impl<F: FnMut(&[u64]) -> Result<Vec<u64>, Failed>> Work for F {
    fn work(&mut self, asked: &[u64]) -> Result<Vec<u64>, Failed> {
        self(asked)
    }
}

impl Work for super::Contest<'_> {
    fn work(&mut self, asked: &[u64]) -> Result<Vec<u64>, Failed> {
        self.turn(asked)
    }
}

/// Real processes, forked from this one, each on a core of its own if there are enough. Killed when
/// this is dropped.
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
    /// Starts `count` processes, which prepare by `set_up` and then work when they are asked.
    ///
    /// No other thread of this process may run: the children are forked.
    pub fn start<W: Work>(
        count: usize,
        set_up: impl Fn(Place) -> Result<W, Failed>,
    ) -> Result<Self, Failed> {
        Self::start_on(&cores()?, count, set_up)
    }

    /// Starts a process that disturbs those of [`start`](Self::start) as little as may be: it gets
    /// the core that is their last.
    pub fn start_beside<W: Work>(
        set_up: impl Fn(Place) -> Result<W, Failed>,
    ) -> Result<Self, Failed> {
        let mut cores = cores()?;
        cores.reverse();
        Self::start_on(&cores, 1, set_up)
    }

    fn start_on<W: Work>(
        cores: &[usize],
        count: usize,
        set_up: impl Fn(Place) -> Result<W, Failed>,
    ) -> Result<Self, Failed> {
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
                    let place = Place {
                        index,
                        count,
                        gate,
                        epoch,
                    };
                    serve(theirs, core, || set_up(place))
                }
                pid => {
                    let pid = Pid::from_raw(pid)
                        .ok_or_else(|| Failed("a child without a number".to_owned()))?;
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

    /// Asks all of them, and waits for their answers.
    pub fn ask(&mut self, words: &[u64]) -> Result<Vec<Vec<u64>>, Failed> {
        for child in &mut self.children {
            send(&mut child.line, OK, &to_bytes(words))?;
        }
        self.children.iter_mut().map(Child::answer).collect()
    }

    /// Their process numbers.
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
    fn answer(&mut self) -> Result<Vec<u64>, Failed> {
        let gone = |error| Failed(format!("a process that measured is gone: {error}"));
        match receive(&mut self.line).map_err(gone)? {
            (OK, bytes) => Ok(to_words(&bytes)),
            (_, reason) => Err(Failed(String::from_utf8_lossy(&reason).into_owned())),
        }
    }
}

/// A child's life.
fn serve<W: Work>(
    mut line: UnixStream,
    core: Option<usize>,
    set_up: impl FnOnce() -> Result<W, Failed>,
) -> ! {
    let life = || -> io::Result<()> {
        let worker = core.map_or(Ok(()), pin).map_err(Failed::from);
        let mut worker = match worker.and_then(|()| set_up()) {
            Ok(worker) => worker,
            Err(failed) => return send(&mut line, FAILED, failed.0.as_bytes()),
        };
        send(&mut line, OK, &[])?;
        loop {
            let (_, asked) = receive(&mut line)?;
            match worker.work(&to_words(&asked)) {
                Ok(answer) => send(&mut line, OK, &to_bytes(&answer))?,
                Err(failed) => send(&mut line, FAILED, failed.0.as_bytes())?,
            }
        }
    };
    // The end of the line is the end of the work. Not even a panic may end up in what the parent was
    // doing when it forked.
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
