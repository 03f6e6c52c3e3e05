//! Several things by turns, so that what the machine does to one it does to all.

use super::{Failed, Processes};
use std::time::{Duration, Instant};

/// How often a turn is taken again that was disturbed.
const AGAIN: usize = 4;
/// How many rounds are tried for each that is wanted.
const TRIES: usize = 4;
/// How long is waited for a machine that is too busy.
const PATIENCE: Duration = Duration::from_secs(6);
/// The fewest rounds that make a median.
const FEWEST: usize = 15;

type BeforeRound<'a> = Box<dyn FnMut() -> Result<(), Failed> + 'a>;

/// Rounds in which each thing has its turn.
#[allow(missing_debug_implementations)] // a closure
pub struct Alternation<'a> {
    contenders: usize,
    rounds: usize,
    turn: Duration,
    before_round: BeforeRound<'a>,
}

/// What each thing took in each round, in nanoseconds an operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Times {
    rounds: Vec<Vec<f64>>,
    /// In how many of them no process lost its core, and all began together. On a machine that is
    /// too busy for 15 of them, all rounds count, and figures of several processes say
    /// little.
    pub undisturbed: usize,
}

impl<'a> Alternation<'a> {
    /// So many rounds, at least 15, in which each of `contenders` things has a turn of this length.
    pub fn new(contenders: usize, rounds: usize, turn: Duration) -> Self {
        Self {
            contenders,
            rounds: rounds.max(FEWEST),
            turn,
            before_round: Box::new(|| Ok(())),
        }
    }

    /// Does something before each round.
    pub fn before_each_round(mut self, does: impl FnMut() -> Result<(), Failed> + 'a) -> Self {
        self.before_round = Box::new(does);
        self
    }

    /// Runs on processes that take turns as [`Contest`](super::Contest) does, until so many rounds
    /// were undisturbed, or several times as many were tried, or patience is at its end.
    pub fn run(mut self, processes: &mut Processes) -> Result<Times, Failed> {
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

    /// What each thing took, and whether any turn was disturbed each time that it was taken.
    fn round(&mut self, processes: &mut Processes) -> Result<(Vec<f64>, bool), Failed> {
        (self.before_round)()?;
        let mut times = Vec::with_capacity(self.contenders);
        let mut is_disturbed = false;
        for contender in 0..self.contenders {
            let mut turn = self.turn(processes, contender)?;
            for _ in 1..AGAIN {
                if !turn.is_disturbed {
                    break;
                }
                turn = self.turn(processes, contender)?;
            }
            is_disturbed |= turn.is_disturbed;
            times.push(turn.nanoseconds);
        }
        Ok((times, is_disturbed))
    }

    fn turn(&self, processes: &mut Processes, contender: usize) -> Result<Turn, Failed> {
        let length = self.turn.as_nanos() as u64;
        let answers = processes.ask(&[contender as u64, length])?;
        let mut sum = 0.0;
        let (mut first, mut last, mut preempted) = (u64::MAX, 0, 0);
        for answer in &answers {
            let &[start, nanoseconds, operations, preemptions] = &answer[..] else {
                return Err(Failed(format!("not a turn's answer: {answer:?}")));
            };
            sum += nanoseconds as f64 / operations as f64;
            (first, last) = (first.min(start), last.max(start));
            preempted += preemptions;
        }
        // More processes than cores lose these all the time, which belongs to what is measured.
        let is_apart = last - first > length / 10;
        Ok(Turn {
            nanoseconds: sum / answers.len() as f64,
            is_disturbed: processes.are_pinned() && (preempted > 0 || is_apart),
        })
    }
}

/// One thing, once, by all processes.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// For an operation, as a process sees it.
    nanoseconds: f64,
    /// Whether a process lost its core, or began when another one was well under way: so it says little
    /// of how processes meet.
    is_disturbed: bool,
}

impl Times {
    /// The median time of a thing in nanoseconds.
    pub fn nanoseconds(&self, contender: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[contender]).collect())
    }

    /// How much longer one thing takes than another: the median over the rounds.
    pub fn ratio(&self, measured: usize, yardstick: usize) -> f64 {
        let ratios = (self.rounds.iter()).map(|round| round[measured] / round[yardstick]);
        median(ratios.collect())
    }
}

/// The middle of some numbers; not a number if there are none.
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
