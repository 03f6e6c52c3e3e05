//! Who has joined, and which memberships are still needed.

use super::{A_LOCK_ORDERS, Catcher, Mutant, fault};

const HOLD: &str = "src/algorithm/lifetime.rs";
const REGISTRY: &str = "src/algorithm/registry.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a slot's word is loaded without Acquire",
        REGISTRY,
        &[(
            "self.word.load(Ordering::Acquire)",
            "self.word.load(Ordering::Relaxed)",
        )],
        Catcher::Model("k1_"),
    )
    .harmless(A_LOCK_ORDERS),
    fault(
        "a joiner does not look again once it has the lock",
        REGISTRY,
        &[(
            "            if !word.is_taken() {
                // Before",
            "            {
                // Before",
        )],
        Catcher::Model("k1_a_slot_whose_frontend_has_just_died"),
    ),
    fault(
        "a reaper does not look again once it has the lock",
        REGISTRY,
        &[(
            "            if word.is_taken() {
                slot.set(word.reaping());",
            "            {
                slot.set(word.reaping());",
        )],
        Catcher::Model("k1_two_reapers"),
    ),
    fault(
        "a reaper does not recover the lanes",
        REGISTRY,
        &[(
            "            self.counter.recover(self.lane(slot, lane));",
            "            let _ = lane;",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a slot is vacated before it is empty",
        REGISTRY,
        &[(
            "                self.empty(index, &mut returned);
                self.vacate(index);
",
            "                self.vacate(index);
                self.empty(index, &mut returned);
",
        )],
        Catcher::Model("k1_death_of_the_reaper"),
    ),
    fault(
        "a slot is vacated without Release",
        REGISTRY,
        &[(
            "        self.word.store(word, Ordering::Release);",
            "        self.word.store(word, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_join_against"),
    )
    .harmless(A_LOCK_ORDERS),
    fault(
        "the end of a permit is counted without Release",
        HOLD,
        &[(
            ".store(permits.wrapping_sub(1), Ordering::Release);",
            ".store(permits.wrapping_sub(1), Ordering::Relaxed);",
        )],
        Catcher::Model("models::lifetime"),
    ),
    fault(
        "a lane is left without Release",
        HOLD,
        &[(
            "self.busy.store(0, Ordering::Release);",
            "self.busy.store(0, Ordering::Relaxed);",
        )],
        Catcher::Model("models::lifetime"),
    ),
    fault(
        "a membership is taken apart while a lane is busy",
        HOLD,
        &[(
            "permits == 0 && !lanes.into_iter().any(LaneUse::is_busy)",
            "permits == 0 && { let _ = lanes; true }",
        )],
        Catcher::Model("models::lifetime"),
    ),
    fault(
        "a thread with memberships in hand does not scan again when another requested it",
        HOLD,
        &[("if now == seen {", "if now >= seen {")],
        Catcher::Model("models::lifetime"),
    ),
];
