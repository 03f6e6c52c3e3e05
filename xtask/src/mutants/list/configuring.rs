//! Refusals, deployments, and a living table that is brought to another configuration.

use super::{Catcher, Mutant, fault};

const REFUSAL: &str = "src/frontend/choose/refusal.rs";
const PLACE: &str = "src/algorithm/place.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a list that never fits is applied as far as it goes",
        "src/table/configuration/apply.rs",
        &[("if options.engines.len() > room {", "if false {")],
        Catcher::Test("deploying", "apply_changes_nothing_if"),
    ),
    fault(
        "only engines that take requests now can make a request pass",
        REFUSAL,
        &[(
            "When::Idle => word.state() != RowState::Removed,",
            "When::Idle => word.is_active(),",
        )],
        Catcher::Test("refusals", "c4_saturated_says_whether_waiting"),
    ),
    fault(
        "the caps of excluded engines can make a request pass",
        REFUSAL,
        &[(
            "if !takes || is_kept || self.is_excluded(engine) {",
            "if !takes || is_kept {",
        )],
        Catcher::Test("refusals", "c4_saturated_says_whether_waiting"),
    ),
    fault(
        "the first engine at its cap says which cap it is",
        REFUSAL,
        &[(
            "(Admission::AtItsCap(Full::Tokens), _) => {",
            "(Admission::AtItsCap(Full::Tokens), NoChoice::AllClosed) => {",
        )],
        Catcher::Test("refusals", "c4_saturated_names_the_cap"),
    ),
    fault(
        "refusals go with the frontend that they were told",
        "src/algorithm/registry.rs",
        &[(
            "slots.filter(|(_, slot)| slot.word().joins() > 0) {",
            "slots.filter(|(_, slot)| slot.word().is_taken()) {",
        )],
        Catcher::Test("refusals", "refusals_outlive_their_frontend"),
    ),
    fault(
        "a call counts as refused before the dead are reaped",
        "src/frontend/mod.rs",
        &[(
            "        let mut placed = place();\n",
            "        let mut placed = place().inspect_err(|error| self.count_refusal(error));\n",
        )],
        Catcher::Test("refusals", "a_request_that_a_reap_made_room_for"),
    ),
    fault(
        "a deployment does not look whether there is one",
        "src/table/configuration/deployment.rs",
        &[(
            "Role::take(self, DEPLOYMENT_LOCK, holder, \"locking the deployment of\")?",
            "Role::take(self, 3 + u64::from(std::process::id()) % 9, holder, \"locking\")?",
        )],
        Catcher::Test("deploying", "a_table_has_one_deployment"),
    ),
    fault(
        "a table that serves a deployment is changed by others",
        "src/table/configuration/apply.rs",
        &[("if self.is_held(DEPLOYMENT_LOCK) {", "if false {")],
        Catcher::Test("deploying", "apply_changes_nothing_if"),
    ),
    fault(
        "an engine that is changed by an apply takes requests again",
        "src/table/configuration/apply.rs",
        &[(
            "engines.rewrite(slot, |word| Some(word.state()));",
            "engines.rewrite(slot, |_| Some(RowState::Active));",
        )],
        Catcher::Test("deploying", "apply_brings_a_living_table"),
    ),
    fault(
        "a first cap of the table overlooks a request that is counted without one",
        PLACE,
        &[(
            "        self.announce_all();\n        self.announce_all();\n",
            "        self.announce_all();\n",
        )],
        Catcher::Model("c4_a_first_cap_of_the_table"),
    ),
    fault(
        "a cap of the table is changed without a rewrite",
        PLACE,
        &[(
            "        self.announce_all();\n        self.announce_all();\n",
            "",
        )],
        Catcher::Model("c4_a_lowered_cap_of_the_table"),
    ),
    fault(
        "engines are added up before the requests that are being placed are read",
        PLACE,
        &[
            (
                "            let being_placed = self.counter.observe(self.total_row());\n",
                "            let taken = self.taken(true);\n            let being_placed = self.counter.observe(self.total_row());\n",
            ),
            (
                "            let taken = self.taken(caps.tokens.is_some());\n",
                "",
            ),
        ],
        Catcher::Model("c4_the_last_free_place_of_the_table"),
    ),
    fault(
        "requests that are being placed do not count below the table's cap",
        PLACE,
        &[(
            "match caps.full(taken.plus(being_placed), share) {",
            "match caps.full(taken, share) {",
        )],
        Catcher::Model("c4_the_last_free_place_of_the_table"),
    ),
    fault(
        "a cap that the options do not set stays",
        "src/table/configuration/apply.rs",
        &[(
            "engines.rows().set_total_caps(options.total_caps());",
            "let asked = options.total_caps();\n        if !asked.is_none() {\n            engines.rows().set_total_caps(asked);\n        }",
        )],
        Catcher::Test("deploying", "apply_leaves_what"),
    ),
    fault(
        "what a table was configured with does not fit once an operator has changed it",
        "src/table/configuration/difference.rs",
        &[("!configured.has_engines(&self.engines)", "true")],
        Catcher::Test("deploying", "a_change_by_an_operator"),
    ),
    fault(
        "a cap of the table that was configured does not fit once an operator has changed it",
        "src/table/configuration/configured.rs",
        &[(
            "self.max_in_flight.load(Ordering::Relaxed) == cap_to_bits(cap)",
            "false",
        )],
        Catcher::Test("deploying", "a_change_by_an_operator"),
    ),
    fault(
        "a configuration fits after another one was applied",
        "src/table/configuration/apply.rs",
        &[
            ("configured.complete(options);", "let _ = configured;"),
            ("configured.begin(options);", ""),
        ],
        Catcher::Test("deploying", "a_change_by_an_operator"),
    ),
    fault(
        "a request without tokens needs room for some",
        "src/algorithm/total.rs",
        &[("change.tokens() > 0 && ", "")],
        Catcher::Test("deploying", "c5_a_request_without_tokens"),
    ),
    fault(
        "an applier takes another one for the deployment",
        "src/table/configuration/apply.rs",
        &[(
            "let changer = self.change_engines()?;\n        if self.is_held(DEPLOYMENT_LOCK) {",
            "let _deployment = self.deploy()?;\n        let changer = self.change_engines()?;\n        if false {",
        )],
        Catcher::Test("deploying", "apply_waits_for_another"),
    ),
    fault(
        "two names may look like one",
        "src/table/engine.rs",
        &[("self.name.chars().any(is_invisible)", "false")],
        Catcher::Test("engines", "an_engine_with_an_impossible"),
    ),
];
