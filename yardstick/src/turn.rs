//! One thing for a moment, by all processes at once.

use super::{Failed, Place};
use std::time::{Duration, Instant};

/// Does something so many times.
pub type Operation<'a> = Box<dyn FnMut(u32) -> Result<(), Failed> + 'a>;

/// The things that a process does by turns.
#[allow(missing_debug_implementations)] // closures
pub struct Contest<'a> {
    place: Place,
    contenders: Vec<Contender<'a>>,
}

struct Contender<'a> {
    operation: Operation<'a>,
    /// How many operations there are between two looks at the clock; 0: not known yet.
    batch: u32,
}

impl<'a> Contest<'a> {
    /// Things that can be asked for by their number.
    pub fn new(place: Place, operations: Vec<Operation<'a>>) -> Self {
        let contender = |operation| Contender {
            operation,
            batch: 0,
        };
        Self {
            place,
            contenders: operations.into_iter().map(contender).collect(),
        }
    }

    /// One turn, as it is asked for: which thing, and for how many nanoseconds. Answers when it began
    /// (in nanoseconds, the same clock for all processes), how many nanoseconds it took, how many
    /// operations were done, and how often the kernel took the core away.
    pub fn turn(&mut self, asked: &[u64]) -> Result<Vec<u64>, Failed> {
        let &[which, nanoseconds] = asked else {
            return Err(Failed(format!("not a turn: {asked:?}")));
        };
        let Some(contender) = self.contenders.get_mut(which as usize) else {
            return Err(Failed(format!("there is no contender {which}")));
        };
        contender.warm_up()?;
        self.place.gate.wait(self.place.count)?;
        contender.run(Duration::from_nanos(nanoseconds), self.place.epoch)
    }
}

impl Contender<'_> {
    /// Finds a batch in whose time a look at the clock does not count.
    fn warm_up(&mut self) -> Result<(), Failed> {
        const ENOUGH: Duration = Duration::from_micros(20);
        while self.batch == 0 || self.batch < 1 << 16 {
            let batch = (self.batch * 2).max(1);
            let start = Instant::now();
            (self.operation)(batch)?;
            if self.batch > 0 && start.elapsed() >= ENOUGH {
                break;
            }
            self.batch = batch;
        }
        Ok(())
    }

    fn run(&mut self, length: Duration, epoch: Instant) -> Result<Vec<u64>, Failed> {
        let (preemptions, start) = (preemptions(), Instant::now());
        let mut operations = 0;
        loop {
            (self.operation)(self.batch)?;
            operations += u64::from(self.batch);
            let elapsed = start.elapsed();
            if elapsed >= length {
                let preempted = self::preemptions() - preemptions;
                let began = start - epoch;
                return Ok(vec![
                    began.as_nanos() as u64,
                    elapsed.as_nanos() as u64,
                    operations,
                    preempted,
                ]);
            }
        }
    }
}

/// How often the kernel has given this thread's core to another one, unasked.
fn preemptions() -> u64 {
    // SAFETY: plain numbers, of which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a place for the answer. It fails for no argument such as these; then
    // nothing is known of preemptions.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nivcsw as u64
}
