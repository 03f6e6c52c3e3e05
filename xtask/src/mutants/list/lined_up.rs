//! Waiting for a place, by tests over real processes.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a finish wakes none",
        "src/frontend/lifetime.rs",
        &[(
            "    table.wake_for(engine);\n}",
            "    let _ = (table, engine);\n}",
        )],
        Catcher::Test("waiting", "q1_a_place_that_comes_free"),
    ),
    fault(
        "a finish does not look whether a request waits",
        "src/frontend/lifetime.rs",
        &[(
            "            if operation.is_awaited() {",
            "            if false {",
        )],
        Catcher::Test("waiting", "q1_a_place_that_comes_free"),
    ),
    fault(
        "fewer tokens wake none",
        "src/frontend/lifetime.rs",
        &[(
            "} else if tokens < before && membership",
            "} else if tokens > before && membership",
        )],
        Catcher::Test("waiting", "q1_a_place_that_comes_free"),
    ),
    fault(
        "a change of engines wakes none",
        "src/table/waking.rs",
        &[(
            "        if !self.queue().is_awaited_after() {\n            return;",
            "        if true {\n            return;",
        )],
        Catcher::Test("waiting", "q1_a_place_that_comes_free"),
    ),
    fault(
        "one that leaves the queue does not look for the next",
        "src/frontend/waiting/waiters.rs",
        &[(
            "        self.1.table().wake_next(Some(self.1.slot()))",
            "        false",
        )],
        Catcher::Test("waiting", "q1_the_next_one"),
    ),
    fault(
        "a later request overtakes those that wait",
        "src/algorithm/queue.rs",
        &[(
            "            if key >= mine {\n                continue;",
            "            if key >= mine || true {\n                continue;",
        )],
        Catcher::Test("waiting", "q2_a_later_request"),
    ),
    fault(
        "classes have no order",
        "src/algorithm/queue/order.rs",
        &[(
            "Self(((class as u64) << START_BITS) | start.clamp",
            "Self(((class as u64 & 0) << START_BITS) | start.clamp",
        )],
        Catcher::Test("waiting", "q2_a_smaller_class"),
    ),
    fault(
        "the bounds of the queue are looked at before the count",
        "src/algorithm/queue.rs",
        &[(
            "            if self.counter().attempt(me, row, seen, Amount::request(0)) {\n                return true;\n            }",
            "            self.counter().add(me, row, Amount::request(0));\n            return true;",
        )],
        Catcher::Test("waiting", "q3_the_bound_of_a_class"),
    ),
    fault(
        "a deadline comes a millisecond early",
        "src/frontend/waiting/waiter.rs",
        &[("now >= self.deadline", "now + 1_000_000 >= self.deadline")],
        Catcher::Test("waiting", "q3_a_request_waits_no"),
    ),
    fault(
        "a task of an early deadline waits for the look of the others",
        "src/frontend/waiting/task.rs",
        &[("if is_early {", "if false && is_early {")],
        Catcher::Test("waiting", "q3_a_task_waits"),
    ),
    fault(
        "one that does not answer is not passed over",
        "src/algorithm/queue.rs",
        &[("> PATIENCE", "> PATIENCE * 60")],
        Catcher::Test("waiting", "q4_one_that_is_stopped_is_passed"),
    ),
    fault(
        "several that do not answer are passed over one by one",
        "src/frontend/waiting/waiters.rs",
        &[("            table.wake_those_in_line(slot);\n", "")],
        Catcher::Test("waiting", "q4_several"),
    ),
    fault(
        "a dropped future keeps its place",
        "src/frontend/waiting/task.rs",
        &[(
            "            drop(waiter.take_outcome());",
            "            std::mem::forget(waiter.take_outcome());",
        )],
        Catcher::Test("waiting", "q5_a_place_that"),
    ),
    fault(
        "a thread that leaves hands the lead on to none",
        "src/frontend/waiting/blocking.rs",
        &[("        state.hand_on(self.waiter.number);\n", "")],
        Catcher::Test("waiting", "q5_a_thread_that_gives_up"),
    ),
    fault(
        "a finish wakes all",
        "src/table/waking.rs",
        &[(
            "        if let Some(slot) = self.queue().next_for(engine, now) {\n            self.wake_at(slot, now);\n        }",
            "        let _ = engine;\n        self.wake_all(now, usize::MAX);",
        )],
        Catcher::Test("waiting", "q6_a_finish"),
    ),
    fault(
        "waiting burns processor time",
        "src/frontend/waiting/waiters.rs",
        &[(
            "LOOK: Duration = Duration::from_millis(50)",
            "LOOK: Duration = Duration::from_micros(50)",
        )],
        Catcher::Test("waiting", "q6_waiting_burns"),
    ),
    fault(
        "large shares count as one",
        "src/algorithm/queue.rs",
        &[("f64::from(weight))", "f64::from(weight).min(1.0))")],
        Catcher::Test("waiting", "q7_tenants"),
    ),
    fault(
        "a tenant that was alone pays for it later",
        "src/algorithm/queue.rs",
        &[("seen.max(now).max(1)", "seen.max(now & 0).max(1)")],
        Catcher::Test("waiting", "q7_a_tenant_that_is_alone"),
    ),
];
