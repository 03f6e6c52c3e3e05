//! Rounds in which contenders alternate, so that a disturbance by the machine meets all of them.

use super::{MeasureError, Processes};
use std::time::{Duration, Instant};

/// How often a slice is tried, if it is disturbed.
const AGAIN: usize = 4;
/// How many rounds are tried for each undisturbed one that is wanted.
const TRIES: usize = 4;
/// How long a busy machine is waited for.
const PATIENCE: Duration = Duration::from_secs(6);
/// The fewest rounds that make a median.
const FEWEST: usize = 15;

type BeforeRound<'a> = Box<dyn FnMut() -> Result<(), MeasureError> + 'a>;

/// Rounds in which each contender runs for one slice.
#[allow(missing_debug_implementations, reason = "it holds a closure")]
pub struct Alternation<'a> {
    contenders: usize,
    rounds: usize,
    slice: Duration,
    before_round: BeforeRound<'a>,
}

/// The time of each contender in each round, in nanoseconds an operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Times {
    rounds: Vec<Vec<f64>>,
    /// In how many rounds no process lost its core, and all processes began together. On a machine that is too
    /// busy for 15 such rounds, all rounds count, and the figures of several processes mean little.
    pub undisturbed: usize,
}

impl<'a> Alternation<'a> {
    /// Plans `rounds` rounds, at least 15, in which each of `contenders` runs for one `slice`.
    pub fn new(contenders: usize, rounds: usize, slice: Duration) -> Self {
        Self {
            contenders,
            rounds: rounds.max(FEWEST),
            slice,
            before_round: Box::new(|| Ok(())),
        }
    }

    /// Calls `does` before each round.
    pub fn before_each_round(
        mut self,
        does: impl FnMut() -> Result<(), MeasureError> + 'a,
    ) -> Self {
        self.before_round = Box::new(does);
        self
    }

    /// Runs the rounds on processes that work by [`Contenders`](super::Contenders). Stops when enough rounds were
    /// undisturbed, when four times as many were tried, or after some seconds.
    ///
    /// # Errors
    ///
    /// A sentence, if a process fails or is gone.
    pub fn run(mut self, processes: &mut Processes) -> Result<Times, MeasureError> {
        let start = Instant::now();
        self.round(processes)?; // one to warm up
        let (mut undisturbed, mut disturbed) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds * TRIES {
            match self.round(processes)? {
                (round, false) => undisturbed.push(round),
                (round, true) => disturbed.push(round),
            }
            let enough = undisturbed.len() + disturbed.len() >= FEWEST;
            if undisturbed.len() == self.rounds || (enough && start.elapsed() > PATIENCE) {
                break;
            }
        }
        let count = undisturbed.len();
        if count < FEWEST {
            undisturbed.extend(disturbed);
        }
        Ok(Times {
            rounds: undisturbed,
            undisturbed: count,
        })
    }

    /// Returns the times of one round, and whether a slice stayed disturbed however often it was tried.
    fn round(&mut self, processes: &mut Processes) -> Result<(Vec<f64>, bool), MeasureError> {
        (self.before_round)()?;
        let mut times = Vec::with_capacity(self.contenders);
        let mut is_disturbed = false;
        for contender in 0..self.contenders {
            let mut slice = self.slice(processes, contender)?;
            for _ in 1..AGAIN {
                if !slice.is_disturbed {
                    break;
                }
                slice = self.slice(processes, contender)?;
            }
            is_disturbed |= slice.is_disturbed;
            times.push(slice.nanoseconds);
        }
        Ok((times, is_disturbed))
    }

    fn slice(&self, processes: &mut Processes, contender: usize) -> Result<Slice, MeasureError> {
        let length = self.slice.as_nanos() as u64;
        let answers = processes.ask(&[contender as u64, length])?;
        let mut sum = 0.0;
        let (mut first, mut last, mut preempted) = (u64::MAX, 0, 0);
        for answer in &answers {
            let &[start, nanoseconds, operations, preemptions] = &answer[..] else {
                return Err(MeasureError(format!(
                    "not the answer of a slice: {answer:?}"
                )));
            };
            sum += nanoseconds as f64 / operations as f64;
            (first, last) = (first.min(start), last.max(start));
            preempted += preemptions;
        }
        // Processes that share cores lose them all the time, which belongs to the measurement.
        let is_apart = last - first > length / 10;
        Ok(Slice {
            nanoseconds: sum / answers.len() as f64,
            is_disturbed: processes.are_pinned() && (preempted > 0 || is_apart),
        })
    }
}

/// One contender, run once by all processes.
#[derive(Clone, Copy, Debug)]
struct Slice {
    /// The time of an operation, as a process sees it.
    nanoseconds: f64,
    /// Whether a process lost its core, or began late: then the processes met for a part of the slice only.
    is_disturbed: bool,
}

impl Times {
    /// Returns the median time of a contender, in nanoseconds.
    pub fn nanoseconds(&self, contender: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[contender]).collect())
    }

    /// Returns how many times as long one contender takes as another: the median over the rounds.
    pub fn ratio(&self, measured: usize, yardstick: usize) -> f64 {
        let ratios = (self.rounds.iter()).map(|round| round[measured] / round[yardstick]);
        median(ratios.collect())
    }
}

/// Returns the median, or NaN if there are no numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => numbers[middle],
        _ => (numbers[middle - 1] + numbers[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_ratio_is_taken_within_rounds() {
        // The machine is three times as slow in the second round.
        let rounds = vec![vec![1.0, 2.0], vec![3.0, 6.0], vec![1.0, 2.0]];
        let times = Times {
            rounds,
            undisturbed: 3,
        };
        assert_eq!(times.ratio(1, 0), 2.0);
        assert_eq!(times.nanoseconds(1), 2.0);
    }
}
