//! Refusals, deployments, and a living table that is brought to another configuration.

use super::{Catcher, Mutant, fault};

const REFUSAL: &str = "src/choose/refusal.rs";

pub(super) const FAULTS: &[Mutant] = &[
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
            "if !takes || self.request.excluded.contains(&engine) {",
            "if !takes {",
        )],
        Catcher::Test("refusals", "c4_saturated_says_whether_waiting"),
    ),
    fault(
        "the first engine at its cap says which cap it is",
        "src/choose.rs",
        &[(
            "Look::AtItsCap(Full::Tokens) => at_their_caps = Some(Full::Tokens),\n",
            "",
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
        "src/frontend.rs",
        &[(
            "        let mut placed = place();\n",
            "        let mut placed = place().inspect_err(|error| self.count_refusal(error));\n",
        )],
        Catcher::Test("refusals", "a_request_that_a_reap_made_room_for"),
    ),
];
