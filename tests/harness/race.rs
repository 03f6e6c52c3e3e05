//! Whether processes that had to race did race. On a machine that is busy, or has few processors, they may run one
//! after the other, and a test of them shows nothing.

use crate::actor::{Actor, Answer, Task, Timed, read};
use serde::de::DeserializeOwned;

/// How many times the planned rounds are run at most, until one of them falls into the race.
const MOST_TIMES: usize = 50;

/// Returns the time in nanoseconds, by a clock that all processes share.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the time only; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The rounds of a race, and how many of them fell into what the test is about.
///
/// ```no_run
/// # let (kill, was_amid_it) = (|| (), || true);
/// let mut rounds = headcount_tests::Rounds::new(60, "kills in the middle of it");
/// while rounds.another() {
///     kill();
///     rounds.fell(was_amid_it());
/// }
/// ```
#[derive(Debug)]
pub struct Rounds {
    what: &'static str,
    least: usize,
    run: usize,
    fell: usize,
}

impl Rounds {
    /// Plans at least `least` rounds, and more if none of them falls into `what`.
    pub fn new(least: usize, what: &'static str) -> Self {
        Self {
            what,
            least,
            run: 0,
            fell: 0,
        }
    }

    /// Returns whether there is to be another round. Fails if none of very many has fallen into `what`.
    pub fn another(&mut self) -> bool {
        let Self {
            what,
            least,
            run,
            fell,
        } = *self;
        if run >= least && fell > 0 {
            println!("{what}: {fell} of {run} rounds");
            return false;
        }
        assert!(
            run < least * MOST_TIMES,
            "{what}: none of {run} rounds; this test has shown nothing"
        );
        self.run += 1;
        true
    }

    /// Notes whether this round fell into it.
    pub fn fell(&mut self, fell: bool) {
        self.fell += usize::from(fell);
    }
}

/// The results of a task that several actors did at once.
#[derive(Debug)]
pub struct Raced<T> {
    /// Their answers, in their order. The debug form of the error of an actor that could not do the task.
    pub answers: Vec<Result<T, String>>,
    /// Whether two of them were at it at the same time.
    pub met: bool,
}

impl Raced<Vec<u32>> {
    /// Returns what all of them placed, engine by engine.
    pub fn placed(&self) -> Vec<u32> {
        let mut sum = Vec::new();
        for answer in &self.answers {
            let numbers = answer.as_ref().expect("all of them can do it");
            for (engine, number) in numbers.iter().enumerate() {
                sum.resize(sum.len().max(engine + 1), 0);
                sum[engine] += number;
            }
        }
        sum
    }
}

/// The time from the message to the start, in nanoseconds: long enough for all actors to read it, and, beside other work,
/// for those that wait to get a processor. They keep it until the start.
const START: u64 = 1_000_000;

/// Has all of them do a task at the same moment, and waits for their answers.
pub fn race<T: DeserializeOwned>(actors: &mut [Actor], task: &Task) -> Raced<T> {
    let at = Task::At {
        time: monotonic_ns() + START,
        task: Box::new(task.clone()),
    };
    actors.iter_mut().for_each(|actor| actor.tell(&at));
    let (mut answers, mut times) = (Vec::new(), Vec::new());
    for actor in actors {
        let Timed { start, end, answer } = actor.answer();
        times.push((start, end));
        answers.push(read(answer));
    }
    times.sort_unstable();
    let met = times.windows(2).any(|two| two[1].0 < two[0].1);
    Raced { answers, met }
}

/// Does a task when the clock says `time`. Returns what the actor answers: its begin, its end, and the answer.
pub fn at(time: u64, task: impl FnOnce() -> Answer) -> impl serde::Serialize {
    while monotonic_ns() < time {
        std::hint::spin_loop();
    }
    let start = monotonic_ns();
    let answer = task();
    let end = monotonic_ns();
    Timed { start, end, answer }
}
