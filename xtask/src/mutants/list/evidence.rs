//! The evidence that operations took effect.

use super::{Catcher, Mutant, fault};

const COUNTER: &str = "src/algorithm/counter.rs";
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
        "the word is read only once by a helper",
        EVIDENCE,
        &[(
            "            && self.words[row].load(Ordering::Relaxed) == seen;
        if !still",
            ";
        if !still",
        )],
        Catcher::Model("that_is_helped_late"),
    ),
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
            "self.is_witnessed(id, tag) || lane.confirmed.load(Ordering::Relaxed) >= operation",
            "operation == u64::MAX && self.is_witnessed(id, tag)",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a word is overwritten, and no witness left",
        EVIDENCE,
        &[(
            "            self.leave_witness(seen, me);\n",
            "            let _ = Self::leave_witness;\n",
        )],
        Catcher::Model("k1_death_in_route"),
    ),
    fault(
        "a witness makes room for one of an earlier operation",
        EVIDENCE,
        &[(
            "if witness.is_after(mine.load(Ordering::Relaxed)) {",
            "if witness != mine.load(Ordering::Relaxed) {",
        )],
        Catcher::Model("k1_death_of_a_lane_of_which_two"),
    ),
    fault(
        "a witness of a word that was not overwritten stays",
        COUNTER,
        &[(
            "            self.withdraw_witness(seen, me);\n",
            "            let _ = Self::withdraw_witness;\n",
        )],
        Catcher::Model("k1_death_after_another_lane_slept"),
    ),
    fault(
        "a witness of another operation is withdrawn",
        EVIDENCE,
        &[(
            "            && mine.load(Ordering::Relaxed) == Witness::of(seen.tag())\n",
            "",
        )],
        Catcher::Model("k1_death_of_a_lane_of_which_two"),
    ),
    fault(
        "a sweep leaves the witnesses",
        EVIDENCE,
        &[(
            "            witness.store(Witness::NONE, Ordering::Release);\n",
            "            let _ = witness;\n",
        )],
        Catcher::Model("after_a_witness"),
    ),
    fault(
        "a sweep leaves the lane's name on words",
        EVIDENCE,
        &[(
            "        (0..self.words.len()).for_each(|row| self.take_name_off(row, me));\n",
            "        let _ = Self::take_name_off;\n",
        )],
        Catcher::Model("k1_death_a_turn_after_an_operation"),
    ),
    fault(
        "a witness of an operation that its lane has not begun is overlooked",
        "src/algorithm/counter/audit.rs",
        &[(
            "if witness.is_after(Witness::of(Tag::of(operation))) {",
            "if witness.is_after(witness) {",
        )],
        Catcher::Test("verify", "an_impossible_lane"),
    ),
];
