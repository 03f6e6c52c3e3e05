//! The processes, and what is done to them.

use crate::history::{History, Process};
use crate::record;
use headcount_tests::{Random, directory, monotonic_ns};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A process that works, and where it writes down what it does.
struct Worker {
    child: Child,
    record: PathBuf,
    /// From when to when it was stopped.
    stops: Vec<(u64, u64)>,
    resumes_at: Option<Instant>,
}

impl Worker {
    fn signal(&self, signal: i32) {
        // SAFETY: the process is a child of ours that was not waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    fn stop(&mut self, time: Duration) {
        self.stops.push((monotonic_ns(), u64::MAX));
        self.signal(libc::SIGSTOP);
        self.resumes_at = Some(Instant::now() + time);
    }

    fn resume(&mut self) {
        if self.resumes_at.take().is_some() {
            self.signal(libc::SIGCONT);
            if let Some((_, end)) = self.stops.last_mut() {
                *end = monotonic_ns();
            }
        }
    }
}

/// All processes, and how often which fault was injected.
pub(crate) struct Faults {
    table: PathBuf,
    directory: TempDir,
    workers: Vec<Worker>,
    /// When a process is to take the place of one that was killed.
    next: Vec<Instant>,
    ended: Vec<(Worker, u64)>,
    started: u64,
    kills: usize,
    kills_of_stopped: usize,
    stops: usize,
}

impl Faults {
    pub(crate) fn new(table: &Path, processes: usize) -> Self {
        let mut faults = Self {
            table: table.to_owned(),
            directory: directory(),
            workers: Vec::new(),
            next: Vec::new(),
            ended: Vec::new(),
            started: 0,
            kills: 0,
            kills_of_stopped: 0,
            stops: 0,
        };
        (0..processes).for_each(|_| faults.start());
        faults
    }

    fn start(&mut self) {
        self.started += 1;
        let record = self.directory.path().join(self.started.to_string());
        let own = std::env::current_exe().expect("the path of this program");
        let seed = monotonic_ns() ^ self.started << 48;
        let child = Command::new(own)
            .arg("worker")
            .args([self.table.as_path(), record.as_path()])
            .arg(seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        self.workers.push(Worker {
            child: child.expect("starts a process"),
            record,
            stops: Vec::new(),
            resumes_at: None,
        });
    }

    /// Does one thing to one of them, and what has come due.
    pub(crate) fn inject(&mut self, random: &mut Random) {
        let now = Instant::now();
        for worker in &mut self.workers {
            if worker.resumes_at.is_some_and(|at| at <= now) {
                worker.resume();
            }
        }
        let due = self.next.iter().filter(|at| **at <= now).count();
        self.next.retain(|at| *at > now);
        (0..due).for_each(|_| self.start());
        let stopped = self
            .workers
            .iter()
            .filter(|w| w.resumes_at.is_some())
            .count();
        let index = random.below(self.workers.len() as u64) as usize;
        match random.below(4) {
            0 if self.next.is_empty() => self.kill(index, random),
            1 | 2 if stopped < 3 && self.workers[index].resumes_at.is_none() => {
                self.stops += 1;
                self.workers[index].stop(Duration::from_millis(5 + random.below(150)));
            }
            _ => {}
        }
    }

    fn kill(&mut self, index: usize, random: &mut Random) {
        let mut worker = self.workers.swap_remove(index);
        self.kills += 1;
        self.kills_of_stopped += usize::from(worker.resumes_at.is_some());
        let killed = monotonic_ns();
        worker.child.kill().expect("it runs");
        worker.child.wait().expect("it ends");
        self.ended.push((worker, killed));
        // Not at once: who joins reaps.
        self.next
            .push(Instant::now() + Duration::from_millis(random.below(200)));
    }

    /// Ends all processes, and returns what all have written down, up to `end`.
    pub(crate) fn end(mut self, end: u64) -> History {
        for mut worker in std::mem::take(&mut self.workers) {
            worker.resume();
            drop(worker.child.stdin.take());
            self.ended.push((worker, end));
        }
        let ended = std::mem::take(&mut self.ended);
        let processes = (ended.into_iter())
            .map(|(mut worker, at)| {
                worker.child.wait().expect("it ends");
                Process::new(record::read(&worker.record), worker.stops, at)
            })
            .collect();
        History::new(processes)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, stops, .. } = self;
        let of_stopped = self.kills_of_stopped;
        write!(
            f,
            "SIGKILL {kills} ({of_stopped} of stopped ones), SIGSTOP {stops}"
        )
    }
}
