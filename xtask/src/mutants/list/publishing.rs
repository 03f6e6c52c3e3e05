//! Publications.

use super::{Catcher, Mutant, fault};

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
];
