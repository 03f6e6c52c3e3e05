//! Several things by turns, so that what the machine does to one it does to all.

use super::{Failed, Processes};
use std::time::Duration;

/// How often a turn is taken again because a process lost its core in it: such a turn says nothing of
/// how two processes meet.
const AGAIN: usize = 8;

type BeforeRound<'a> = Box<dyn FnMut() -> Result<(), Failed> + 'a>;

/// Rounds in which each thing has its turn.
#[expect(missing_debug_implementations)] // a closure
pub struct Alternation<'a> {
    contenders: usize,
    rounds: usize,
    turn: Duration,
    before_round: BeforeRound<'a>,
}

/// What each thing took in each round, in nanoseconds an operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Times(Vec<Vec<f64>>);

impl<'a> Alternation<'a> {
    /// So many rounds, in which each of `contenders` things has a turn of this length.
    pub fn new(contenders: usize, rounds: usize, turn: Duration) -> Self {
        Self {
            contenders,
            rounds,
            turn,
            before_round: Box::new(|| Ok(())),
        }
    }

    /// Does something before each round.
    pub fn before_each_round(mut self, does: impl FnMut() -> Result<(), Failed> + 'a) -> Self {
        self.before_round = Box::new(does);
        self
    }

    /// Runs all rounds on processes that take turns as [`Contest`](super::Contest) does.
    pub fn run(mut self, processes: &mut Processes) -> Result<Times, Failed> {
        let mut times = vec![Vec::with_capacity(self.rounds); self.contenders];
        // A round first that does not count.
        for round in 0..=self.rounds {
            (self.before_round)()?;
            for (contender, times) in times.iter_mut().enumerate() {
                let time = self.turn(processes, contender)?;
                if round > 0 {
                    times.push(time);
                }
            }
        }
        Ok(Times(times))
    }

    fn turn(&self, processes: &mut Processes, contender: usize) -> Result<f64, Failed> {
        let asked = [contender as u64, self.turn.as_nanos() as u64];
        let mut tries = 0;
        loop {
            let answers = processes.ask(&asked)?;
            tries += 1;
            let preempted = answers.iter().any(|answer| answer[2] > 0);
            // More processes than cores take turns on these anyway.
            if !preempted || !processes.are_pinned() || tries == AGAIN {
                let each = answers.iter().map(|a| a[0] as f64 / a[1] as f64);
                return Ok(each.sum::<f64>() / answers.len() as f64);
            }
        }
    }
}

impl Times {
    /// The median time of a thing in nanoseconds.
    pub fn nanoseconds(&self, contender: usize) -> f64 {
        median(self.0[contender].clone())
    }

    /// How much longer one thing takes than another: the median over the rounds.
    pub fn ratio(&self, measured: usize, yardstick: usize) -> f64 {
        let rounds = self.0[measured].iter().zip(&self.0[yardstick]);
        median(rounds.map(|(a, b)| a / b).collect())
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
