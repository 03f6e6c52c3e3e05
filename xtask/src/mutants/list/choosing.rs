//! The choice, what changes make of it, and names.

use super::{Catcher, Mutant, fault};

const ROWS: &str = "src/algorithm/rows.rs";
const CHOOSE: &str = "src/algorithm/choose.rs";
const SCAN: &str = "src/algorithm/scan/mod.rs";
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
            "self.rewrite_all(|other| other != row);",
            "self.rewrite_all(|other| other == row);",
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
        CHOOSE,
        &[(
            "let stands = self.hints() == terms.hints();",
            "let stands = true;",
        )],
        Catcher::Model("c8_up_against_a_choice_by_count"),
    ),
    fault(
        "the chosen word is not compared with the rank by which it was chosen",
        CHOOSE,
        &[("seen, taken) == least.load();", "seen, taken) <= i32::MAX;")],
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
        "src/table/change.rs",
        &[(
            "        engines.configure(engine, &limits);\n        engines.rows().announce_all();\n",
            "        engines.configure(engine, &limits);\n",
        )],
        Catcher::Test("engines", "c8_a_route_under_way"),
    ),
    fault(
        "terms are kept whatever the publication is",
        "src/algorithm/terms.rs",
        &[("self.source.publication == publication && ", "")],
        Catcher::Test("publishing", "s"),
    ),
    fault(
        "terms are kept whatever the policy is",
        "src/algorithm/terms.rs",
        &[(" && self.source.policy == policy", "")],
        Catcher::Test("policies", ""),
    ),
    fault(
        "terms outlive their publication",
        "src/frontend/choose/load.rs",
        &[(
            "!terms.never_expire() && clock::now_coarse() >= terms.expires()",
            "!terms.never_expire() && clock::now_coarse() >= u64::MAX - terms.expires()",
        )],
        Catcher::Test("publishing", "s4_"),
    ),
    fault(
        "an engine stays excluded for the next request",
        CHOOSE,
        &[(
            "false => wishes.excluded(|engine, _| terms.include(engine)),",
            "false => wishes.excluded(|_, _| ()),",
        )],
        Catcher::Test("policies", ""),
    ),
    fault(
        "a request is not counted in the load of an engine with a weight",
        SCAN,
        &[(
            "let own = lanes.multiply(lanes.float(lanes.next(in_flight)), terms.cost());",
            "let own = lanes.multiply(lanes.float(in_flight), terms.cost());",
        )],
        Catcher::Test("weights", "c2_"),
    ),
    fault(
        "a request's tokens are not counted in the load of an engine with a weight",
        SCAN,
        &[(
            "(u64::from(tokens) + u64::from(of_request))",
            "(u64::from(tokens) + u64::from(of_request) * 0)",
        )],
        Catcher::Test("weights", "tokens"),
    ),
    fault(
        "engines that come later have their turns in the order of their numbers",
        "src/frontend/choose/tie_break.rs",
        &[(
            "engines.map(|engine| number(scattered(engine), engine))",
            "engines.map(|engine| number(scattered(engine) & 0, engine))",
        )],
        Catcher::Unit("c7_"),
    ),
];
