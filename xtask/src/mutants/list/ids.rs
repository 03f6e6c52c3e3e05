//! The list of engines, their names and ids, and what users see of them.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a change by an id goes by the slot alone",
        "src/table/engines.rs",
        &[(
            "self.generation(which.index()) == generation",
            "self.generation(which.index()) >= generation",
        )],
        Catcher::Test("ids", "c8_a_change_by_id"),
    ),
    fault(
        "an engine is recognized before its row's word is loaded",
        "src/algorithm/rows.rs",
        &[
            (
                "        let mut is_there = false;\n",
                "        let (mut is_there, was_it) = (false, is_it());\n",
            ),
            (
                "RowState::Removed && is_it();",
                "RowState::Removed && was_it;",
            ),
        ],
        Catcher::Model("c8_a_change_by_generation"),
    ),
    fault(
        "a change by an id looks for its engine before it begins",
        "src/table/change.rs",
        &[(
            "let is_it = || engines.has(engine);",
            "let was_it = engines.has(engine);\n        let is_it = || was_it;",
        )],
        Catcher::Step("FindAndDrain-Replace"),
    ),
    fault(
        "weights and caps are changed by the slot",
        "src/table/change.rs",
        &[(
            "RowState::Removed || !engines.has(which)",
            "RowState::Removed",
        )],
        Catcher::Test("ids", "c8_a_change_by_id"),
    ),
    fault(
        "a pin by an id goes by the slot",
        "src/frontend/choose/single.rs",
        &[(
            "RowState::Removed && self.engines.has(which)",
            "RowState::Removed",
        )],
        Catcher::Test("ids", "c8_a_change_by_id"),
    ),
    fault(
        "an id stands for whichever engine a view shows in its slot",
        "src/table/engine_id.rs",
        &[(
            "(self.generation == ANY || self.generation == id.generation)",
            "(self.generation == ANY || self.generation <= id.generation)",
        )],
        Catcher::Test("ids", "c8_a_change_by_id"),
    ),
    fault(
        "an engine that comes back with requests in flight is made a new one",
        "src/table/change.rs",
        &[(
            "vacant = Some((slot, word.value() == 0));",
            "vacant = Some((slot, true));",
        )],
        Catcher::Test("ids", "c8_an_engine_that_comes_back"),
    ),
    fault(
        "an engine that comes back without requests is taken for the old one",
        "src/table/change.rs",
        &[(
            "vacant = Some((slot, word.value() == 0));",
            "vacant = Some((slot, false));",
        )],
        Catcher::Test("ids", "c8_an_engine_that_comes_back"),
    ),
    fault(
        "a newcomer is shown the statistics of the engine before it",
        "src/publication/read.rs",
        &[(
            "published.len() < into.len() || !none_arrived",
            "published.len() < into.len()",
        )],
        Catcher::Test("publishing", "statistics_of_an_engine"),
    ),
    fault(
        "what a publication leaves out is what was read before",
        "src/publication/read.rs",
        &[(
            "published.len() < into.len() || !none_arrived",
            "!none_arrived",
        )],
        Catcher::Test("publishing", "statistics_of_an_engine"),
    ),
    fault(
        "a newcomer is not counted",
        "src/table/engines.rs",
        &[("arrivals).fetch_add(1,", "arrivals).fetch_add(0,")],
        Catcher::Test("publishing", "statistics_of_an_engine"),
    ),
    fault(
        "an engine's weight is set, and its cap on tokens goes",
        "src/table/engines.rs",
        &[("            .max_tokens(self.max_tokens(slot))\n", "")],
        Catcher::Test("engines", "a_change_of_an_engine_leaves"),
    ),
    fault(
        "the highest cap on tokens is shown as none",
        "src/inspect/view.rs",
        &[("*cap < MAX_TOKENS", "*cap < MAX_TOKENS - 1")],
        Catcher::Test("engines", "a_change_of_an_engine_leaves"),
    ),
    fault(
        "a name may have control characters that are not ASCII",
        "src/table/engine.rs",
        &[("char::is_control", "|c: char| c.is_ascii_control()")],
        Catcher::Test("engines", "an_engine_with_an_impossible"),
    ),
    fault(
        "the length of a name is counted in characters",
        "src/table/engine.rs",
        &[(
            "match self.name.len() {",
            "match self.name.chars().count() {",
        )],
        Catcher::Test("engines", "an_engine_with_an_impossible"),
    ),
    fault(
        "tables are taken for alike whose engines differ in their caps on tokens",
        "src/table/configuration/difference.rs",
        &[(
            "        (\"max_tokens\", tokens(found), tokens(asked)),\n",
            "",
        )],
        Catcher::Test("file", "f1_open_or_create_gives"),
    ),
    fault(
        "requests that wait are shown as running",
        "cli/src/show/json.rs",
        &[("running: stats.running,", "running: stats.waiting,")],
        Catcher::Test("cli", "json_says_of_each_engine"),
    ),
    fault(
        "requests that were admitted are shown as finished",
        "cli/src/show/text.rs",
        &[(
            "short(engine.finished_total)",
            "short(engine.admitted_total)",
        )],
        Catcher::Test("cli", "text_has_each_figure"),
    ),
    fault(
        "a probe brings up whichever engine has the slot",
        "server/src/parent/probe.rs",
        &[("up_if_down(engine.id)", "up_if_down(engine.index)")],
        Catcher::Test("http", "a_probe_of_an_engine_that_is_gone"),
    ),
    fault(
        "the server has a limit of its own for names",
        "server/src/engine/address.rs",
        &[("0..=MAX_NAME_LEN => Ok(address)", "0..=112 => Ok(address)")],
        Catcher::Test("http", "an_engine_may_have_the_longest_name"),
    ),
    fault(
        "the command removes whichever engine has the slot",
        "cli/src/engines.rs",
        &[("table.remove(engine)", "table.remove(engine.index())")],
        Catcher::Test("cli", "an_engine_that_is_replaced"),
    ),
    fault(
        "the command weighs whichever engine has the slot",
        "cli/src/engines.rs",
        &[(
            "set_weight(engine.id, weight)",
            "set_weight(engine.id.index(), weight)",
        )],
        Catcher::Test("cli", "an_engine_that_is_replaced"),
    ),
    fault(
        "the command caps whichever engine has the slot",
        "cli/src/cap.rs",
        &[(
            "set_max_in_flight(engine.id, requests.0)",
            "set_max_in_flight(engine.id.index(), requests.0)",
        )],
        Catcher::Test("cli", "an_engine_that_is_replaced"),
    ),
];
