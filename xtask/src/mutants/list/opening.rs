//! Creating, opening, passing on, and who is taken for alive meanwhile.

use super::{Catcher, Mutant, fault};

const LOCK: &str = "src/file/lock.rs";
const REGISTRY: &str = "src/algorithm/registry.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a reaper locks one byte only, as a frontend does",
        LOCK,
        &[(
            "        self.try_lock_range(of_visitor(slot))",
            "        self.try_lock_range(of_frontend(slot))",
        )],
        Catcher::Test("crashes", "k4_who_opens_waits"),
    ),
    fault(
        "a joiner stays a visitor",
        LOCK,
        &[(
            "        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte, length: 1 })",
            "        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte: byte + 1, length: 1 })",
        )],
        Catcher::Test("crashes", "k2_a_stopped_process"),
    ),
    fault(
        "a joiner lets go of its lock to become the frontend",
        LOCK,
        &[(
            "        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte, length: 1 })",
            "        let byte = slot_lock(slot);
        self.unlock_range(Range { byte, length: 2 })",
        )],
        Catcher::Test("crashes", "k2_a_stopped_process"),
    ),
    fault(
        "who opens does not wait for a reaper",
        REGISTRY,
        &[(
            "            if !self.is_unsettled(locks)? || !pause() {",
            "            if !self.is_unsettled(locks)? || pause() {",
        )],
        Catcher::Model("k4_who_opens_waits"),
    ),
    fault(
        "a joiner becomes the frontend after the slot says so",
        REGISTRY,
        &[
            (
                "                if let Err(error) = locks.become_frontend(index) {
                    locks.unlock(index)?;
                    return Err(error);
                }
",
                "",
            ),
            (
                "                slot.set(word.taken());
                return",
                "                slot.set(word.taken());
                locks.become_frontend(index)?;
                return",
            ),
        ],
        Catcher::Model("k2_a_look_takes_none_who_leaves"),
    ),
    fault(
        "a visitor is taken for the frontend",
        REGISTRY,
        &[("holder()? == Some(Holder::Frontend)", "holder()?.is_some()")],
        Catcher::Test("crashes", "k2_one_who_is_just_being_reaped"),
    ),
    fault(
        "a joiner that comes too late is taken for the frontend that died",
        REGISTRY,
        &[("holder()? == Some(Holder::Frontend)", "holder()?.is_some()")],
        Catcher::Model("k4_who_opens_does_not_take_a_joiner"),
    ),
    fault(
        "a look does not see that the slot has changed hands",
        REGISTRY,
        &[(
            "            if slot.word() == word {
                return Ok(Some(is_held));
            }",
            "            if slot.word() == word || word.is_taken() {
                return Ok(Some(is_held));
            }",
        )],
        Catcher::Model("k2_a_look_takes_none_who_leaves"),
    ),
];
