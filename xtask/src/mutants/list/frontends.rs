//! Joining, leaving and reaping; and how long what the permits of a frontend share lives.

use super::{Catcher, Mutant, fault};

const HOLD: &str = "src/algorithm/lifetime.rs";
const REGISTRY: &str = "src/algorithm/registry.rs";

pub(super) const FAULTS: &[Mutant] = &[
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
        "a thing is taken apart while a lane is busy",
        HOLD,
        &[(
            "permits == 0 && !lanes.into_iter().any(LaneUse::is_busy)",
            "permits == 0 && { let _ = lanes; true }",
        )],
        Catcher::Model("models::lifetime"),
    ),
    fault(
        "a thread that takes things apart does not look again when others had reason to",
        HOLD,
        &[("if now == seen {", "if now >= seen {")],
        Catcher::Model("models::lifetime"),
    ),
];
