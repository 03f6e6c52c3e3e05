//! The workloads of a process, each of which it runs for a slice when it is asked to.

use super::{MeasureError, Worker};
use std::time::{Duration, Instant};

/// Repeats one operation as often as its argument says.
pub type Workload<'a> = Box<dyn FnMut(u32) -> Result<(), MeasureError> + 'a>;

/// The workloads that a process runs alternately.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct Contenders<'a> {
    worker: Worker,
    contenders: Vec<Contender<'a>>,
}

struct Contender<'a> {
    workload: Workload<'a>,
    /// How many operations there are between two reads of the clock; 0: not known yet.
    batch: u32,
}

impl<'a> Contenders<'a> {
    /// Numbers the workloads of a process from 0.
    pub fn new(worker: Worker, workloads: Vec<Workload<'a>>) -> Self {
        let contender = |workload| Contender { workload, batch: 0 };
        Self {
            worker,
            contenders: workloads.into_iter().map(contender).collect(),
        }
    }

    /// Runs one workload for a slice. `asked` has the number of the workload and the nanoseconds. Returns four
    /// numbers: when the slice began, in nanoseconds since [`Worker::epoch`]; how many nanoseconds it took; how
    /// many operations were done; and how often the kernel took the core away.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no such workload, the workload fails, or another process does not begin.
    pub fn run_slice(&mut self, asked: &[u64]) -> Result<Vec<u64>, MeasureError> {
        let &[which, nanoseconds] = asked else {
            return Err(MeasureError(format!("not a slice: {asked:?}")));
        };
        let Some(contender) = self.contenders.get_mut(which as usize) else {
            return Err(MeasureError(format!("there is no contender {which}")));
        };
        contender.warm_up()?;
        self.worker.gate.wait(self.worker.count)?;
        contender.run(Duration::from_nanos(nanoseconds), self.worker.epoch)
    }
}

impl Contender<'_> {
    /// Finds a batch that is long enough for a read of the clock not to count.
    fn warm_up(&mut self) -> Result<(), MeasureError> {
        const ENOUGH: Duration = Duration::from_micros(20);
        while self.batch < 1 << 16 {
            let batch = (self.batch * 2).max(1);
            let start = Instant::now();
            (self.workload)(batch)?;
            if self.batch > 0 && start.elapsed() >= ENOUGH {
                break;
            }
            self.batch = batch;
        }
        Ok(())
    }

    fn run(&mut self, length: Duration, epoch: Instant) -> Result<Vec<u64>, MeasureError> {
        let (preemptions, start) = (preemptions(), Instant::now());
        let mut operations = 0;
        loop {
            (self.workload)(self.batch)?;
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

/// Returns how often the kernel has taken the core from this thread and given it to another.
fn preemptions() -> u64 {
    // SAFETY: plain numbers, of which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a place for the answer. It fails for no argument such as these; then
    // nothing is known of preemptions.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nivcsw as u64
}
