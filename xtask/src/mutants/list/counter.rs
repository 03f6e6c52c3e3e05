//! The counter, and the placing of requests by it.

use super::{A_LOCK_ORDERS, Catcher, Mutant, fault};

const COUNTER: &str = "src/algorithm/counter.rs";
const PLACE: &str = "src/algorithm/place.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "the ledger is written before the word",
        COUNTER,
        &[(
            "        let taken = self.words[row]
",
            "        total.store(after(total_before, change), Ordering::Release);
        let taken = self.words[row]
",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the intent is cleared before the ledger is written",
        COUNTER,
        &[(
            "            total.store(after(total_before, change), Ordering::Release);
        }
        // Release: pairs with the Acquire of the intent in `standing`, whose",
            "            lane.intent.store(Intent::IDLE, Ordering::Release);
            total.store(after(total_before, change), Ordering::Release);
        }
        // Release: pairs with the Acquire of the intent in `standing`, whose",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the intent is written after the word",
        COUNTER,
        &[
            (
                "        lane.intent
            .store(Intent::active(row, tag), Ordering::Release);
",
                "",
            ),
            (
                "        if taken {
            if let Some(",
                "        if taken {
            lane.intent.store(Intent::active(row, tag), Ordering::Release);
            if let Some(",
            ),
        ],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the operation's number does not advance",
        COUNTER,
        &[(
            "let mut operation = last.wrapping_add(1);",
            "let mut operation = last;",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the count is taken from a newer word than the choice",
        COUNTER,
        &[(
            "        let lane = &self.lanes[usize::from(me.0) - 1];
        // Relaxed, here",
            "        let seen = self.load(row);
        let lane = &self.lanes[usize::from(me.0) - 1];
        // Relaxed, here",
        )],
        Catcher::Model("c4_the_last_free_place_and"),
    ),
    fault(
        "a dead lane's tokens are not brought up to date",
        COUNTER,
        &[(
            "                self.advance_tokens(row, tokens_before, change);
                self.hold_tokens(id",
            "                let _ = tokens_before;
                self.hold_tokens(id",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a word is loaded without Acquire",
        COUNTER,
        &[(
            "self.words[row].load(Ordering::Acquire)",
            "self.words[row].load(Ordering::Relaxed)",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a word is written without Release",
        COUNTER,
        &[(
            "                seen.changed(change, me, tag),
                Ordering::Release,",
            "                seen.changed(change, me, tag),
                Ordering::Relaxed,",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the end of an operation is written without Release",
        COUNTER,
        &[(
            "        lane.intent.store(Intent::IDLE, Ordering::Release);
        taken",
            "        lane.intent.store(Intent::IDLE, Ordering::Relaxed);
        taken",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a row is rewritten without Release",
        COUNTER,
        &[(
            "                        seen.rewritten(state, tag),
                        Ordering::Release,",
            "                        seen.rewritten(state, tag),
                        Ordering::Relaxed,",
        )],
        Catcher::Model("c8_"),
    ),
    fault(
        "a rewrite does not change the word's tag",
        COUNTER,
        &[(
            "seen.rewritten(state, tag),",
            "seen.rewritten(state, { let _ = tag; seen.tag() }),",
        )],
        Catcher::Model("c8_a_request_chosen"),
    ),
    fault(
        "an operation's number is stored without Release",
        COUNTER,
        &[(
            "lane.operation.store(operation, Ordering::Release);",
            "lane.operation.store(operation, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_after_an_operation"),
    ),
    fault(
        "an operation's fields are stored without Release",
        COUNTER,
        &[(
            "lane.tokens_before.store(tokens_before, Ordering::Release);",
            "lane.tokens_before.store(tokens_before, Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "tokens are written without Release",
        COUNTER,
        &[(
            "before.changed(change),
            Ordering::Release,",
            "before.changed(change),
            Ordering::Relaxed,",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "tokens are looked at without Acquire",
        COUNTER,
        &[(
            "let tokens = self.tokens[row].load(Ordering::Acquire);",
            "let tokens = self.tokens[row].load(Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a witness is left after the word is overwritten",
        COUNTER,
        &[
            (
                "        if !self.secure_evidence(row, seen, me) {
            return false;",
                "        let late = !seen.is_with_tokens();
        if !late && !self.secure_evidence(row, seen, me) {
            return false;",
            ),
            (
                "        if taken {
            if let Some(",
                "        if taken {
            if late {
                self.secure_evidence(row, seen, me);
            }
            if let Some(",
            ),
        ],
        Catcher::Model("k1_death_whose"),
    ),
    fault(
        "eras do not end, with tags of two bits",
        COUNTER,
        &[(
            "if Era::ends_between(last, operation) {",
            "if Era::ends_between(last, last) {",
        )],
        Catcher::Model("k1_death_long_after"),
    )
    .with_narrow_tags(),
    fault(
        "whoever joins does not bring the eras of its lanes up to date",
        "src/algorithm/registry.rs",
        &[(
            "self.counter.renew_era(self.lane(index, lane));",
            "let _ = lane;",
        )],
        Catcher::Model("k1_death_of_a_lane"),
    ),
    fault(
        "a total is stored without Release",
        COUNTER,
        &[(
            "            total.store(after(total_before, change), Ordering::Release);",
            "            total.store(after(total_before, change), Ordering::Relaxed);",
        )],
        Catcher::Model("c1_a_recount"),
    ),
    fault(
        "held tokens are stored without Release",
        COUNTER,
        &[(
            ".store(held, Ordering::Release);",
            ".store(held, Ordering::Relaxed);",
        )],
        Catcher::Model("c1_a_recount"),
    ),
    fault(
        "the table's cap is checked, and counted on whatever it is then",
        PLACE,
        &[(
            "None if (self.counter).attempt(me, self.total_row(), being_placed.0, share) => {",
            "None => {\n                    self.counter.add(me, self.total_row(), share);",
        )],
        Catcher::Model("c4_the_last_free_place_of"),
    ),
    fault(
        "a place under the table's cap is not given back",
        PLACE,
        &[(
            "        if reserved != Amount::ZERO {",
            "        if placed && reserved != Amount::ZERO {",
        )],
        Catcher::Model("c4_a_place_under"),
    ),
    fault(
        "an operation's change is stored without Release",
        COUNTER,
        &[(
            "lane.change.store(change, Ordering::Release);",
            "lane.change.store(change, Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "an intent is stored without Release",
        COUNTER,
        &[(
            ".store(Intent::active(row, tag), Ordering::Release);",
            ".store(Intent::active(row, tag), Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a recovered operation is ended without Release",
        COUNTER,
        &[(
            "        // Release: as at the end of `attempt`, and for the same readers.
        lane.intent.store(Intent::IDLE, Ordering::Release);",
            "        lane.intent.store(Intent::IDLE, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_in_route_and_a_reap"),
    ),
    fault(
        "a dead lane's intent is loaded without Acquire",
        COUNTER,
        &[(
            "let intent = lane.intent.load(Ordering::Acquire);
        let Some",
            "let intent = lane.intent.load(Ordering::Relaxed);
        let Some",
        )],
        Catcher::Model("k1_"),
    )
    .harmless(A_LOCK_ORDERS),
];
