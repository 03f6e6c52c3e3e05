//! The counter, and the placing of requests by it.

use super::{A_LOCK_ORDERS, Catcher, Mutant, fault};

const COUNTER: &str = "src/algorithm/counter.rs";
const PLACE: &str = "src/algorithm/place.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "the help is left out",
        COUNTER,
        &[(
            "    lane.confirmed.fetch_max(operation, Ordering::Relaxed);
}",
            "    let _ = (lane, operation);
}",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the tokens of others are not brought up to date",
        COUNTER,
        &[(
            "                    self.advance_tokens(row, tokens_before, change);
                }
                confirm",
            "                    let _ = tokens_before;
                }
                confirm",
        )],
        Catcher::Model("c5_"),
    ),
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
        &[(
            "        lane.intent
            .store(Intent::active(row, tag), Ordering::Release);
",
            "",
        ),(
            "        if taken {
            if let Some(",
            "        if taken {
            lane.intent.store(Intent::active(row, tag), Ordering::Release);
            if let Some(",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the word is read only once by a helper, with tags of two bits",
        COUNTER,
        &[(
            "            && self.words[row].load(Ordering::Relaxed) == seen;
        if !still",
            ";
        if !still",
        )],
        Catcher::Model("k1_death_after_many"),
    )
    .with_narrow_tags(),
    fault(
        "the confirmation is stored, not raised",
        COUNTER,
        &[(
            "lane.confirmed.fetch_max(operation, Ordering::Relaxed);",
            "lane.confirmed.store(operation, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_with_two_helpers"),
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
        "a dead lane's operation counts as done if its word still names it, and not otherwise",
        COUNTER,
        &[(
            "self.is_witnessed(id, row, tag, began)
            || lane.confirmed.load(Ordering::Relaxed) >= operation",
            "operation == u64::MAX && self.is_witnessed(id, row, tag, began)",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
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
        "a mark is written without Release",
        COUNTER,
        &[(
            "                        seen.marked(state, tag),
                        Ordering::Release,",
            "                        seen.marked(state, tag),
                        Ordering::Relaxed,",
        )],
        Catcher::Model("c8_"),
    ),
    fault(
        "a mark does not change the word's tag",
        COUNTER,
        &[(
            "seen.marked(state, tag),",
            "seen.marked(state, { let _ = tag; seen.tag() }),",
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
        "a helper loads the number without Acquire",
        COUNTER,
        &[(
            "late helper above.
        let operation = lane.operation.load(Ordering::Acquire);",
            "late helper above.
        let operation = lane.operation.load(Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_after_an_operation"),
    ),
    fault(
        "a helper loads the intent without Acquire",
        COUNTER,
        &[(
            "let intent = lane.intent.load(Ordering::Acquire);
        if intent != ",
            "let intent = lane.intent.load(Ordering::Relaxed);
        if intent != ",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a helper loads the fields without Acquire",
        COUNTER,
        &[(
            "let tokens_before = lane.tokens_before.load(Ordering::Acquire);",
            "let tokens_before = lane.tokens_before.load(Ordering::Relaxed);",
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
        "a word is overwritten, and no witness left",
        COUNTER,
        &[(
            "            self.witness(row, seen, me);\n",
            "            let _ = Self::witness;\n",
        )],
        Catcher::Model("k1_death_in_route"),
    ),
    fault(
        "a witness is left after the word is overwritten",
        COUNTER,
        &[
            (
                "            self.witness(row, seen, me);\n",
                "",
            ),
            (
                "        if taken {
            if let Some(",
                "        if taken {
            if seen.lane() != me && seen.lane() != NOBODY && !seen.is_with_tokens() {
                self.witness(row, seen, me);
            }
            if let Some(",
            ),
        ],
        Catcher::Model("k1_death_whose"),
    ),
    fault(
        "a witness makes room without a look at its lane",
        COUNTER,
        &[(
            "            self.retire(row, last);\n",
            "            let _ = Self::retire;\n",
        )],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "a witness makes room before what it told of is confirmed",
        COUNTER,
        &[
            (
                "        if last.lane() != seen.lane() {
            self.retire(row, last);
        }
",
                "",
            ),
            (
                "        mine.store(Witness::of(seen, era).to_bits(), Ordering::Release);
",
                "        mine.store(Witness::of(seen, era).to_bits(), Ordering::Release);
        if last.lane() != seen.lane() {
            self.retire(row, last);
        }
",
            ),
        ],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "a witness is stored without Release",
        COUNTER,
        &[(
            "mine.store(Witness::of(seen, era).to_bits(), Ordering::Release);",
            "mine.store(Witness::of(seen, era).to_bits(), Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "a witness is loaded without Acquire",
        COUNTER,
        &[(
            "Witness::from_bits(witness.load(Ordering::Acquire))",
            "Witness::from_bits(witness.load(Ordering::Relaxed))",
        )],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "witnesses are looked at after what is confirmed",
        COUNTER,
        &[(
            "self.is_witnessed(id, row, tag, began)
            || lane.confirmed.load(Ordering::Relaxed) >= operation",
            "lane.confirmed.load(Ordering::Relaxed) >= operation
            || self.is_witnessed(id, row, tag, began)",
        )],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "whoever makes room in a witness loads the number without Acquire",
        COUNTER,
        &[(
            "is that of the number.
        let operation = lane.operation.load(Ordering::Acquire);",
            "is that of the number.
        let operation = lane.operation.load(Ordering::Relaxed);",
        )],
        Catcher::Model("k1_a_witness_makes_room"),
    ),
    fault(
        "whoever makes room in a witness takes any era for its own, with tags of two bits",
        COUNTER,
        &[(
            "            && witness.tells_of(witness.lane(), witness.tag(), began)
",
            "            && { let _ = began; true }
",
        )],
        Catcher::Model("k1_death_long_after"),
    )
    .with_narrow_tags(),
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
        "words of an era that has ended still bear their lane's name",
        COUNTER,
        &[(
            "        (0..self.words.len()).for_each(|row| self.disown(row, me));\n",
            "        let _ = (Self::disown, me);\n",
        )],
        Catcher::Model("k1_death_a_turn"),
    ),
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
        "none but tags of two bits, which eras tell apart",
        COUNTER,
        &[],
        Catcher::Model("k1_death_long_after"),
    )
    .with_narrow_tags()
    .harmless("nothing was changed; that the model passes shows that the faults beside this one are caught for what they are"),
    fault(
        "the table's cap is checked, and counted on whatever it is then",
        PLACE,
        &[(
            "            if self.attempt(me, total.row, word, change) {
                return true;
            }",
            "            let _ = word;
            self.add(me, total.row, change);
            if self.load(total.row).value() > 0 {
                return true;
            }",
        )],
        Catcher::Model("c4_the_last_free_place_of"),
    ),
    fault(
        "a place under the table's cap is not given back",
        PLACE,
        &[(
            "self.take_from(me, total, change);
            }
            backoff",
            "let _ = total;
            }
            backoff",
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
        "a helper loads the change without Acquire",
        COUNTER,
        &[(
            "let change = lane.change.load(Ordering::Acquire);",
            "let change = lane.change.load(Ordering::Relaxed);",
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
