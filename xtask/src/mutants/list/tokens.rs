//! Tokens that change while their request lives.

use super::{Catcher, Mutant, fault};

const COUNTER: &str = "src/algorithm/counter.rs";
const PLACE: &str = "src/algorithm/place.rs";
const TOTAL: &str = "src/algorithm/total.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "tokens are added above the cap of the engine",
        PLACE,
        &[(
            "match self.has_room(engine, taken, more) {",
            "match self.has_room(engine, taken, more) || seen.is_active() {",
        )],
        Catcher::Model("c5_the_last_tokens_of_an_engine"),
    ),
    fault(
        "tokens are added to those of an older word",
        PLACE,
        OLDER_TOKENS,
        Catcher::Model("c5_the_last_tokens_of_an_engine"),
    ),
    fault(
        "stepped: tokens are added to those of an older word",
        PLACE,
        OLDER_TOKENS,
        Catcher::Step("AddTokens-LastTokens"),
    ),
    fault(
        "tokens that are added are not reserved under the table's cap",
        TOTAL,
        &[(
            "self.tokens.map_or(0, |_| change.tokens())",
            "self.tokens.map_or(0, |_| change.tokens() * change.requests())",
        )],
        Catcher::Model("c5_the_last_tokens_of_the_table"),
    ),
    fault(
        "tokens that are added need a place below the table's cap",
        TOTAL,
        &[(
            "            change.requests() > 0 && !fits(",
            "            change.requests() >= 0 && !fits(",
        )],
        Catcher::Model("c5_tokens_that_are_added_need"),
    ),
    fault(
        "fewer tokens are refused where there is no room",
        PLACE,
        &[(
            "                self.counter.add(me, engine, change);\n",
            "                if !self.has_room(engine, self.counter.observe(engine).1, 1) {
                    return Err(Refusal::Unchosen(()));
                }
                self.counter.add(me, engine, change);\n",
        )],
        Catcher::Test("counting", "c5_a_request_grows_up_to_the_cap_of_its_engine"),
    ),
    fault(
        "a word does not say that tokens changed without a request",
        "src/algorithm/word/row.rs",
        &[(
            "u64::from(change.tokens() != 0) * WITH_TOKENS",
            "u64::from(change.tokens() * change.requests() != 0) * WITH_TOKENS",
        )],
        Catcher::Model("k1_death_while_tokens"),
    ),
    fault(
        "a change of tokens counts as a request in the ledger",
        COUNTER,
        &[(
            "before.wrapping_add(change.requests().unsigned_abs())",
            "before.wrapping_add(change.requests().unsigned_abs().max(1))",
        )],
        Catcher::Model("c1_a_recount_while_tokens"),
    ),
    fault(
        "killed: a change of tokens alone is not completed after a death",
        COUNTER,
        &[(
            "            if change.tokens() != 0 {
                let tokens_before = lane",
            "            if change.tokens() * change.requests() != 0 {
                let tokens_before = lane",
        )],
        Catcher::Crash("AddTokens"),
    ),
    fault(
        "a permit keeps its former tokens",
        "src/frontend/lifetime.rs",
        &[(
            "        self.request = packed(engine, tokens);\n",
            "        self.request = packed(engine, before);\n",
        )],
        Catcher::Test("counting", "c5_tokens_that_change_are_exact"),
    ),
    fault(
        "tokens that find no room do not look for the dead",
        "src/frontend/permit.rs",
        &[(
            "if is_refused && self.0.membership().reap_if_due() {",
            "if is_refused && tokens == 0 && self.0.membership().reap_if_due() {",
        )],
        Catcher::Test("counting", "c5_room_that_a_dead"),
    ),
    fault(
        "a request that outgrows a cap by itself is told to wait",
        "src/frontend/operation.rs",
        &[(
            "                    passes: too_small.is_none(),\n",
            "                    passes: too_small.is_none() || after > before,\n",
        )],
        Catcher::Test("counting", "c5_a_request_grows"),
    ),
];

const OLDER_TOKENS: &[(&str, &str)] = &[(
    "            let (seen, taken) = self.counter.observe(engine);\n",
    "            let (_, taken) = self.counter.observe(engine);
            let seen = self.counter.load(engine);\n",
)];
