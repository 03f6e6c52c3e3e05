//! The choice, what changes make of it, and names.

use super::{Catcher, Mutant, fault};

const ROWS: &str = "src/algorithm/rows.rs";
const SCAN: &str = "src/algorithm/scan.rs";
const NAME: &str = "src/algorithm/name.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a change moves no version on",
        ROWS,
        &[("        self.update_hints(ScanHints::next);\n", "")],
        Catcher::Model("c8_up_against"),
    ),
    fault(
        "a change rewrites no other row",
        ROWS,
        &[(
            "self.announce_to(|other| other != row);",
            "self.announce_to(|other| other == row);",
        )],
        Catcher::Model("c8_up_against"),
    ),
    fault(
        "a change passes rows over that take no requests",
        ROWS,
        &[(
            "let same = |word: Word| Some(word.state());",
            "let same = |word: Word| word.is_active().then_some(word.state());",
        )],
        Catcher::Model("c8_up_against_a_choice_of_an_engine"),
    ),
    fault(
        "a change moves the version on after the rewrites",
        ROWS,
        &[
            ("        self.update_hints(ScanHints::next);\n", ""),
            (
                "            let _ = self.counter.rewrite(row, same);\n        }\n",
                "            let _ = self.counter.rewrite(row, same);\n        }\n        self.update_hints(ScanHints::next);\n",
            ),
        ],
        Catcher::Model("c8_up_against"),
    ),
    fault(
        "a choice does not look at the hints again",
        ROWS,
        &[(
            "            if now == hints {",
            "            if now == now {",
        )],
        Catcher::Model("c8_"),
    ),
    fault(
        "a choice by count does not look at the hints again",
        SCAN,
        &[("\n            && self.hints() == hints;", ";")],
        Catcher::Model("c8_up_against_a_choice_by_count"),
    ),
    fault(
        "the chosen word is not compared with the rank by which it was chosen",
        SCAN,
        &[(
            "if seen.rank() == least.rank {",
            "if seen.rank() >= 0 || !seen.is_active() || least.rank < 0 {",
        )],
        Catcher::Model("c2_two_choices_by_count"),
    ),
    fault(
        "a name's generation is not made odd",
        NAME,
        &[(
            "self.generation.load(Ordering::Relaxed) | 1;",
            "self.generation.load(Ordering::Relaxed) + 1;",
        )],
        Catcher::Model("a_name_"),
    ),
    fault(
        "a name is read without a look at its generation",
        NAME,
        &[(
            "(stood && generation.is_multiple_of(2))",
            "(stood || generation.is_multiple_of(2))",
        )],
        Catcher::Model("a_name_"),
    ),
    fault(
        "an engine comes up, and choices under way are not made anew",
        "src/table/change.rs",
        &[(
            "to == RowState::Active && moved",
            "to == RowState::Removed && moved",
        )],
        Catcher::Test("engines", "c8_a_route_under_way"),
    ),
    fault(
        "an engine that is up already is brought up, and choices under way are not made anew",
        "src/table/change.rs",
        &[(
            "to == RowState::Active && moved.is_some()",
            "to == RowState::Active && moved.is_some_and(|before| !before.is_active())",
        )],
        Catcher::Step("Route-UpAfterDeathInUp"),
    ),
    fault(
        "limits change, and choices under way are not made anew",
        "src/table/engines.rs",
        &[("        self.rows().announce(slot);\n", "")],
        Catcher::Test("engines", "c8_a_route_under_way"),
    ),
    fault(
        "a request is not counted in the load of an engine with a weight",
        "src/frontend/choose/load.rs",
        &[(
            "(f64::from(c.word.value()) + 1.0) / c.weight",
            "f64::from(c.word.value()) / c.weight",
        )],
        Catcher::Test("weights", "c2_"),
    ),
    fault(
        "a request's tokens are not counted in the load of an engine with a weight",
        "src/frontend/choose/mod.rs",
        &[(
            "f64::from(c.tokens) + f64::from(self.request.tokens)",
            "f64::from(c.tokens)",
        )],
        Catcher::Test("weights", "tokens"),
    ),
    fault(
        "engines that come later have their turns in the order of their numbers",
        "src/frontend/choose/tie_break.rs",
        &[(
            "AtomicU64::new(number(scattered(engine), engine))",
            "AtomicU64::new(number(scattered(engine) & 0, engine))",
        )],
        Catcher::Unit("c7_"),
    ),
];
