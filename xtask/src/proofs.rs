//! The proofs, which take longer than the tests: models, kills and steps, a soak.

use crate::instructions;
use crate::progress::Part;
use crate::step::{Step, cargo};

/// The parts of `cargo xtask proof`.
pub(crate) fn all() -> Vec<Part<'static>> {
    vec![
        models(None),
        kills(101, ""),
        steps(11, ""),
        soak(60),
        queue(60),
        Part::new("the instructions", || instructions::check(false)),
    ]
}

/// The models whose name contains `filter`.
pub(crate) fn models(filter: Option<&str>) -> Part<'static> {
    let models = "test --release --package headcount-loom-tests -- --nocapture";
    cargo("the models", models).args(filter.as_slice()).into()
}

/// A kill at every `every`-th instruction of each operation whose name contains `operation`.
pub(crate) fn kills(every: usize, operation: &str) -> Part<'static> {
    let arguments = [&every.to_string(), operation];
    of_the_tests("the kills", "crash").args(&arguments).into()
}

/// A stop at every `every`-th instruction in each pair of operations whose name contains `pair`.
pub(crate) fn steps(every: usize, pair: &str) -> Part<'static> {
    let arguments = [&every.to_string(), pair];
    of_the_tests("the steps", "step").args(&arguments).into()
}

/// Frontends at full speed for so many seconds, while processes are killed, stopped and forked.
pub(crate) fn soak(seconds: u64) -> Part<'static> {
    let actor = cargo("the actor", "build --release --package headcount-tests");
    let soak = of_the_tests("the soak", "soak").args(&[&seconds.to_string()]);
    Part::new("the soak", || actor.run().and_then(|()| soak.run()))
}

/// Processes that wait for places for so many seconds, while they are killed and stopped.
pub(crate) fn queue(seconds: u64) -> Part<'static> {
    of_the_tests("the queue", "queue")
        .args(&[&seconds.to_string()])
        .into()
}

/// A call of a program of the tests' package, without its arguments.
fn of_the_tests(name: &'static str, program: &str) -> Step {
    cargo(name, "run --release --package headcount-tests").args(&["--bin", program, "--"])
}
