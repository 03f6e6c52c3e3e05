//! The counter, and the placing of requests by it.

use super::{Catcher, Mutant, fault};

const COUNTER: &str = "src/algorithm/counter.rs";
const PLACE: &str = "src/algorithm/place.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "the ledger is written before the word",
        COUNTER,
        &[(
            "        let taken = word
",
            "        total.store(after(total_before, change), Ordering::Release);
        let taken = word
",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the intent is cleared before the ledger is written",
        COUNTER,
        &[(
            "            total.store(after(total_before, change), Ordering::Release);
        } else {",
            "            lane.intent.store(Intent::IDLE, Ordering::Release);
            total.store(after(total_before, change), Ordering::Release);
        } else {",
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
            "            return false;
        }
        // Relaxed, here",
            "            return false;
        }
        let seen = self.load(row);
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
        "a rewrite does not change the word's tag",
        COUNTER,
        &[(
            "seen.rewritten(state, tag),",
            "seen.rewritten(state, { let _ = tag; seen.tag() }),",
        )],
        Catcher::Model("c8_a_request_chosen"),
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
        "a lane does not sweep",
        COUNTER,
        &[(
            "Tag::quarter_ends_between(last, operation)",
            "Tag::quarter_ends_between(last, last)",
        )],
        Catcher::Model("after_a_witness"),
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
        "a lane is shown a word that it may have overwritten since",
        PLACE,
        &[(
            "choice.take().filter(stands).ok_or(())",
            "choice.take().inspect(|choice| _ = stands(choice)).ok_or(())",
        )],
        Catcher::Model("k1_death_in_an_operation"),
    ),
];
