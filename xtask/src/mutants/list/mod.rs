//! The faults that are written by hand, and the table of those that are generated; with what catches each.

mod choosing;
mod command;
mod configuring;
mod corpus;
mod counter;
mod deployment;
mod evidence;
mod face;
mod frontends;
mod fronts;
mod ids;
mod layout;
mod life;
mod lined_up;
mod messages;
mod opening;
pub(super) mod orderings;
mod process;
mod publishing;
mod queueing;
mod steps;
mod tokens;
mod waiting;
mod wheel;

use std::fmt;

/// A fault.
#[derive(Debug)]
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    /// Texts and their replacements. Each text stands in the file exactly once.
    pub(crate) edits: &'static [(&'static str, &'static str)],
    pub(crate) catcher: Catcher,
    /// The reason for which the catcher does not catch it, if it does not.
    pub(crate) harmless: Option<&'static str>,
}

/// What catches a fault: the tests whose name contains the last text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Catcher {
    Model(&'static str),
    Unit(&'static str),
    Test(&'static str, &'static str),
    /// A test of the Python package, as pytest names it below python/tests.
    Python(&'static str),
    /// Pairs of operations: one process is stopped at each instruction of the first while another acts.
    Step(&'static str),
    /// Operations: a process is killed at each instruction.
    Crash(&'static str),
}

impl fmt::Display for Catcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(name) => write!(f, "the model {name}"),
            Self::Unit(name) => write!(f, "the unit test {name}"),
            Self::Test(suite, name) => write!(f, "{suite}::{name}"),
            Self::Python(test) => f.write_str(test),
            Self::Step(pair) => write!(f, "the pair {pair}"),
            Self::Crash(operation) => write!(f, "kills in {operation}"),
        }
    }
}

const fn fault(
    name: &'static str,
    file: &'static str,
    edits: &'static [(&'static str, &'static str)],
    catcher: Catcher,
) -> Mutant {
    Mutant {
        name,
        file,
        edits,
        catcher,
        harmless: None,
    }
}

impl Mutant {
    const fn harmless(mut self, why: &'static str) -> Self {
        self.harmless = Some(why);
        self
    }
}

/// All faults that are written by hand.
pub(crate) fn all() -> impl Iterator<Item = &'static Mutant> {
    [
        choosing::FAULTS,
        command::FAULTS,
        counter::FAULTS,
        deployment::FAULTS,
        evidence::FAULTS,
        publishing::FAULTS,
        frontends::FAULTS,
        ids::FAULTS,
        layout::FAULTS,
        life::FAULTS,
        opening::FAULTS,
        process::FAULTS,
        face::FAULTS,
        fronts::FAULTS,
        messages::FAULTS,
        steps::FAULTS,
        tokens::FAULTS,
        configuring::FAULTS,
        corpus::FAULTS,
        lined_up::FAULTS,
        queueing::FAULTS,
        waiting::FAULTS,
        wheel::FAULTS,
    ]
    .into_iter()
    .flatten()
}
