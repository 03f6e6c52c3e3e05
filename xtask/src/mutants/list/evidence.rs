//! The evidence that operations took effect.

use super::{Catcher, Mutant, fault};

const EVIDENCE: &str = "src/algorithm/counter/evidence.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "the help is left out",
        EVIDENCE,
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
        EVIDENCE,
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
        "the word is read only once by a helper, with tags of two bits",
        EVIDENCE,
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
        EVIDENCE,
        &[(
            "lane.confirmed.fetch_max(operation, Ordering::Relaxed);",
            "lane.confirmed.store(operation, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_with_two_helpers"),
    ),
    fault(
        "a dead lane's operation counts as done if its word still names it, and not otherwise",
        EVIDENCE,
        &[(
            "self.is_witnessed(id, row, tag, began)
            || lane.confirmed.load(Ordering::Relaxed) >= operation",
            "operation == u64::MAX && self.is_witnessed(id, row, tag, began)",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a word is overwritten, and no witness left",
        EVIDENCE,
        &[(
            "            self.witness(row, seen, me);\n",
            "            let _ = Self::witness;\n",
        )],
        Catcher::Model("k1_death_in_route"),
    ),
    fault(
        "a witness makes room without a look at its lane",
        EVIDENCE,
        &[(
            "            self.promote(row, last);\n",
            "            let _ = Self::retire;\n",
        )],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "a witness makes room before what it told of is confirmed",
        EVIDENCE,
        &[
            (
                "        if last.lane() != seen.lane() {
            self.promote(row, last);
        }
",
                "",
            ),
            (
                "        mine.store(Witness::of(seen, era).to_bits(), Ordering::Release);
",
                "        mine.store(Witness::of(seen, era).to_bits(), Ordering::Release);
        if last.lane() != seen.lane() {
            self.promote(row, last);
        }
",
            ),
        ],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "witnesses are looked at after what is confirmed",
        EVIDENCE,
        &[(
            "self.is_witnessed(id, row, tag, began)
            || lane.confirmed.load(Ordering::Relaxed) >= operation",
            "lane.confirmed.load(Ordering::Relaxed) >= operation
            || self.is_witnessed(id, row, tag, began)",
        )],
        Catcher::Model("k1_death_whose_witness"),
    ),
    fault(
        "a lane that replaces its witness takes any era for its own, with tags of two bits",
        EVIDENCE,
        &[(
            "            && witness.names(witness.lane(), witness.tag(), began)
",
            "            && { let _ = began; true }
",
        )],
        Catcher::Model("k1_death_long_after"),
    )
    .with_narrow_tags(),
    fault(
        "words of an era that has ended still bear their lane's name",
        EVIDENCE,
        &[(
            "        (0..self.words.len()).for_each(|row| self.take_name_off(row, me));\n",
            "        let _ = (Self::disown, me);\n",
        )],
        Catcher::Model("k1_death_a_turn"),
    ),
    fault(
        "none but tags of two bits, which eras tell apart",
        EVIDENCE,
        &[],
        Catcher::Model("k1_death_long_after"),
    )
    .with_narrow_tags()
    .harmless("nothing was changed; that the model passes shows that the faults beside this one are caught for what they are"),
];
