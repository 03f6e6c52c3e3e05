//! What is caught when a process is stopped, or killed, at every instruction of the code that ships.

use super::{Catcher, Mutant, fault};

const CHOOSE: &str = "src/algorithm/choose.rs";
const NAME: &str = "src/algorithm/name.rs";
const ENGINE_LIST: &str = "src/table/change.rs";
const APPLY: &str = "src/table/configuration/apply.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "stepped: the chosen word is not compared with its rank",
        CHOOSE,
        &[("seen, taken) == least.load();", "seen, taken) <= i32::MAX;")],
        Catcher::Step("Route-TieAndPin"),
    ),
    fault(
        "stepped: a choice by count does not look at the hints again",
        CHOOSE,
        &[(
            "let stands = self.hints() == terms.hints();",
            "let stands = true;",
        )],
        Catcher::Step("Route-LowerWeight"),
    ),
    fault(
        "stepped: a failed attempt uses a turn up",
        "src/frontend/operation.rs",
        &[(
            "&& counter.attempt_in(lane, choice.engine(), choice.seen, Amount::request(0))",
            "&& { if choice.is_tied() { memory.tie_break.choose(choice.engine()); } true } && counter.attempt_in(lane, choice.engine(), choice.seen, Amount::request(0))",
        )],
        Catcher::Step("RouteTied-PinTwo"),
    ),
    fault(
        "stepped: a newcomer is shown the statistics of the engine before",
        "src/publication/read.rs",
        &[(
            "let none_arrived = reading.arrivals() == self.engines().arrivals();",
            "let none_arrived = reading.arrivals() <= self.engines().arrivals();",
        )],
        Catcher::Step("AddInPlace-ReadStats"),
    ),
    fault(
        "stepped: an engine that comes back with requests is made a new one",
        ENGINE_LIST,
        &[(
            "vacant = Some((slot, word.value() == 0));",
            "vacant = Some((slot, true));",
        )],
        Catcher::Step("Finish-ComesBack"),
    ),
    fault(
        "stepped: processes that change engines do not exclude each other",
        ENGINE_LIST,
        &[("while !lock\n", "while false && !lock\n")],
        Catcher::Step("Add-AddSame"),
    ),
    fault(
        "stepped: a name is read that has changed meanwhile",
        NAME,
        &[(
            "(stood && generation.is_multiple_of(2))",
            "(generation.is_multiple_of(2) && (stood || !stood))",
        )],
        Catcher::Step("Find-RenameHalfway"),
    ),
    fault(
        "stepped: a name is read that is being written",
        NAME,
        &[("(stood && generation.is_multiple_of(2))", "stood")],
        Catcher::Step("Find-RenameHalfway"),
    ),
    fault(
        "stepped: a name is written under an even generation after a death",
        NAME,
        &[(
            "self.generation.load(Ordering::Relaxed) | 1;",
            "self.generation.load(Ordering::Relaxed) + 1;",
        )],
        Catcher::Step("Find-RenameHalfwayAfterDeath"),
    ),
    fault(
        "killed: a sweep leaves the witnesses",
        "src/algorithm/counter/evidence.rs",
        &[(
            "            witness.store(Witness::NONE, Ordering::Release);\n",
            "            let _ = witness;\n",
        )],
        Catcher::Crash("RouteLongAfter"),
    ),
    fault(
        "killed: a reap does not give back a place that was only reserved",
        "src/algorithm/registry.rs",
        &[(
            "for row in self.counter.rows() {",
            "for row in self.counter.rows().filter(|row| *row != total_row) {",
        )],
        Catcher::Crash("Reap"),
    ),
    fault(
        "killed: an apply does not say that it has begun",
        APPLY,
        &[("        configured.begin(options);\n", "")],
        Catcher::Crash("Apply"),
    ),
    fault(
        "killed: an apply that finds nothing to change leaves it at that",
        APPLY,
        &[(
            "        let engines = self.engines();\n        let configured",
            "        if differences.is_empty() {\n            return Ok(Changes { differences });\n        }\n        let engines = self.engines();\n        let configured",
        )],
        Catcher::Crash("Apply"),
    ),
    fault(
        "killed: a first cap of the table is written before requests heed it",
        "src/algorithm/place.rs",
        &[
            (
                "        self.update_hints(|hints| hints.with_total_cap(true));\n",
                "",
            ),
            (
                "        self.announce_all();\n        self.announce_all();\n",
                "        self.announce_all();\n        self.announce_all();\n        self.update_hints(|hints| hints.with_total_cap(!caps.is_none()));\n",
            ),
        ],
        Catcher::Crash("Apply"),
    ),
    fault(
        "killed: a deployment is known by the process that was it last",
        APPLY,
        &[(
            "if self.is_held(DEPLOYMENT_LOCK) {",
            "let pid = &self.mapping().control().deployment_pid;\n        if self.is_held(DEPLOYMENT_LOCK) || pid.load(crate::primitive::Ordering::Relaxed) != 0 {",
        )],
        Catcher::Crash("Deploy"),
    ),
    fault(
        "stepped: two processes apply at once",
        APPLY,
        &[(
            "let changer = self.change_engines()?;\n        if self.is_held",
            "let changer = self.lock_file()?;\n        if self.is_held",
        )],
        Catcher::Step("Apply-Apply"),
    ),
    fault(
        "stepped: a table that serves a deployment is changed by others",
        APPLY,
        &[("if self.is_held(DEPLOYMENT_LOCK) {", "if false {")],
        Catcher::Step("Deploy-Apply"),
    ),
    fault(
        "stepped: an apply looks for a deployment before its turn has come",
        APPLY,
        &[(
            "let changer = self.change_engines()?;\n        if self.is_held(DEPLOYMENT_LOCK) {",
            "let is_deployed = self.is_held(DEPLOYMENT_LOCK);\n        let changer = self.change_engines()?;\n        if is_deployed {",
        )],
        Catcher::Step("Apply-DeployAndApply"),
    ),
    fault(
        "stepped: a deployment does not wait for an apply that has begun",
        APPLY,
        &[("self.table.change_engines()?", "self.table.lock_file()?")],
        Catcher::Step("Apply-DeployAndApply"),
    ),
];
