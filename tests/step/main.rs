//! Two operations, one of them stopped at every instruction, in the shipped code.
//!
//! A child process performs one operation under ptrace. It is led n instructions into it; another
//! process then performs the other operation to its end, and the child goes on to its own end. This is done for every
//! n from the first instruction to the last. The result is judged by the rule for the two operations: mostly, that
//! no operation acts against one that has returned.
//!
//! `step [EVERY [PAIR]]` tries every EVERYth of the instructions, by default all, of the pairs whose
//! name contains PAIR, by default all. Fails on a violation, and if a pair never fell into its race.

mod pairs;
mod rule;
mod scene;

use headcount_tests::{Lead, Strayed};
use pairs::Pair;
use std::process::ExitCode;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let every = arguments
        .next()
        .map_or(Ok(1), |every| every.parse::<usize>());
    let Ok(every @ 1..) = every else {
        eprintln!("usage: step [EVERY [PAIR]]");
        return ExitCode::from(2);
    };
    let name = arguments.next().unwrap_or_default();
    println!(
        "{:<36} {:>12} {:>7} {:>7} {:>10} {:>8}",
        "pair", "instructions", "points", "in race", "violations", "seconds"
    );
    let start = Instant::now();
    let (mut pairs, mut all, mut without_race) = (0, Tried::default(), Vec::new());
    for pair in pairs::all().filter(|pair| pair.name.contains(&name)) {
        let tried = try_all(&pair, every);
        if tried.raced == 0 {
            without_race.push(pair.name);
        }
        pairs += 1;
        all.points += tried.points;
        all.raced += tried.raced;
        all.violations += tried.violations;
    }
    println!(
        "{pairs} pairs, {} points, {} of them in their race, {} violations, {:.0} s",
        all.points,
        all.raced,
        all.violations,
        start.elapsed().as_secs_f32()
    );
    if !without_race.is_empty() {
        println!("never in their race: {}", without_race.join(", "));
    }
    match (all.violations, without_race.as_slice()) {
        (0, []) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The results of a pair.
#[derive(Default)]
struct Tried {
    points: usize,
    /// Points at which the second operation came in the middle of the first.
    raced: usize,
    violations: usize,
}

/// Tries a pair at every instruction, and prints and returns the results.
fn try_all(pair: &Pair, every: usize) -> Tried {
    let start = Instant::now();
    let mut tried = Tried::default();
    // First after the operation, which shows its length and its path. The very first time it takes another path,
    // since it allocates memory that later ones find.
    let mut end = Lead::to_the_end();
    let _ = (pair.point)(&mut end);
    end = Lead::to_the_end();
    let outcome = (pair.point)(&mut end);
    tried.note(pair, &end, outcome);
    for instructions in (0..end.instructions()).step_by(every * pair.every) {
        let mut lead = end.to(instructions);
        let mut outcome = (pair.point)(&mut lead);
        if outcome.as_ref().is_err_and(|error| error.is::<Strayed>()) {
            lead = lead.by_steps();
            outcome = (pair.point)(&mut lead);
        }
        tried.note(pair, &lead, outcome);
    }
    println!(
        "{:<36} {:>12} {:>7} {:>7} {:>10} {:>8.1}",
        pair.name,
        end.instructions(),
        tried.points,
        tried.raced,
        tried.violations,
        start.elapsed().as_secs_f32()
    );
    tried
}

impl Tried {
    fn note(&mut self, pair: &Pair, lead: &Lead, outcome: Result<bool>) {
        // Further ones would add nothing.
        const SHOWN: usize = 3;
        self.points += 1;
        match outcome {
            Ok(raced) => self.raced += usize::from(raced && lead.is_inside()),
            Err(error) => {
                self.violations += 1;
                if self.violations <= SHOWN {
                    println!("{} after {lead}: {error}", pair.name);
                }
            }
        }
    }
}
