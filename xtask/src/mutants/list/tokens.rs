//! Tokens that change while their request lives.

use super::{Catcher, Mutant, fault};

const COUNTER: &str = "src/algorithm/counter.rs";
const PLACE: &str = "src/algorithm/place.rs";
const OUTPUT: &str = "server/src/route/output.rs";
const OUTPUT_OF_VLLM: &str = "python/headcount/vllm/_output.py";
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
    fault(
        "a permit of Python's shows its former tokens",
        "python/src/permit.rs",
        &[(
            "        self.tokens.store(permit.tokens(), Ordering::Relaxed);\n",
            "",
        )],
        Catcher::Python("test_routing.py::test_c5_tokens_change_while_a_request_lives"),
    ),
    fault(
        "vLLM's output counts a token an output, however many it has",
        "python/headcount/vllm/_balance.py",
        &[(
            "self.output.add(permit, tokens)",
            "self.output.add(permit, 1)",
        )],
        Catcher::Python("test_vllm_output.py::test_output_is_counted_some_tokens_at_a_time"),
    ),
    fault(
        "vLLM's output that a cap refuses is forgotten",
        OUTPUT_OF_VLLM,
        &[(
            "            return\n        output.uncounted",
            "            pass\n        output.uncounted",
        )],
        Catcher::Python(
            "test_vllm_output.py::test_output_that_a_cap_refuses_is_counted_when_there_is_room",
        ),
    ),
    fault(
        "the output of vLLM's requests that have ended is kept",
        OUTPUT_OF_VLLM,
        &[("        self.uncounted.pop(permit, None)", "        pass")],
        Catcher::Python("test_vllm_output.py::test_output_is_counted_some_tokens_at_a_time"),
    ),
    fault(
        "output is counted though that is not asked for",
        "server/src/worker/proxy.rs",
        &[(
            "counts_output.then(|| Output::of(&head.headers)).flatten()",
            "Some(counts_output).and_then(|_| Output::of(&head.headers))",
        )],
        Catcher::Test("http", "output_is_not_counted"),
    ),
    fault(
        "events are looked for in an answer that is compressed",
        OUTPUT,
        &[(
            "framing::is_event_stream(head) && !head.contains_key(CONTENT_ENCODING)",
            "framing::is_event_stream(head) || head.contains_key(CONTENT_ENCODING)",
        )],
        Catcher::Test("http", "output_is_not_counted"),
    ),
    fault(
        "the tokens that an event tells are added to those before",
        OUTPUT,
        &[(
            "Some(tokens) => self.tokens = tokens,",
            "Some(tokens) => self.tokens += tokens,",
        )],
        Catcher::Test("http", "each_event_of_a_stream"),
    ),
    fault(
        "the table learns of sixteen tokens, however late",
        OUTPUT,
        &[(" || now - self.told_at >= UNTOLD_FOR {", " {")],
        Catcher::Test("http", "each_event_of_a_stream"),
    ),
    fault(
        "output takes the place of the prompt",
        "server/src/route/permits.rs",
        &[(
            "u64::from(self.of_first).saturating_add(tokens)",
            "u64::from(self.of_first).max(tokens)",
        )],
        Catcher::Test("http", "each_event_of_a_stream"),
    ),
];

const OLDER_TOKENS: &[(&str, &str)] = &[(
    "            let (seen, taken) = self.counter.observe(engine);\n",
    "            let (_, taken) = self.counter.observe(engine);
            let seen = self.counter.load(engine);\n",
)];
