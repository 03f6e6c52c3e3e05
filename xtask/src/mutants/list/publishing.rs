//! Publications.

use super::{A_LOCK_ORDERS, Catcher, Mutant, fault};

const LATCH: &str = "src/algorithm/seqlatch.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "the sequence advances before the copy is written",
        LATCH,
        &[(
            "        fence(Ordering::Release);
",
            "        fence(Ordering::Release);
        self.sequence.store(next, Ordering::Release);
",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "the sequence is stored without Release",
        LATCH,
        &[(
            "self.sequence.store(sequence, Ordering::Release)",
            "self.sequence.store(sequence, Ordering::Relaxed)",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "the sequence is loaded without Acquire",
        LATCH,
        &[(
            "let before = self.sequence.load(Ordering::Acquire)",
            "let before = self.sequence.load(Ordering::Relaxed)",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "a reader has no fence",
        LATCH,
        &[("        fence(Ordering::Acquire);\n", "")],
        Catcher::Model("s1_"),
    ),
    fault(
        "a publisher has no fence",
        LATCH,
        &[("        fence(Ordering::Release);\n", "")],
        Catcher::Model("s1_"),
    ),
    fault(
        "a reader does not look whether it was overtaken",
        LATCH,
        &[(
            "if number(after).wrapping_sub(number(before)) < COPIES as u64 - 1 {",
            "if number(after).wrapping_sub(number(before)) < u64::MAX {",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "a reader allows for one publication too many",
        LATCH,
        &[(
            "if number(after).wrapping_sub(number(before)) < COPIES as u64 - 1 {",
            "if number(after).wrapping_sub(number(before)) < COPIES as u64 {",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "the next publisher loads the sequence without Acquire",
        LATCH,
        &[(
            "number(self.sequence.load(Ordering::Acquire)).wrapping_add(1)",
            "number(self.sequence.load(Ordering::Relaxed)).wrapping_add(1)",
        )],
        Catcher::Model("s2_"),
    )
    .harmless(A_LOCK_ORDERS),
];
