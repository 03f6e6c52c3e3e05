//! Waiting for a place: who comes first, and that no wake-up is lost.

use super::{Catcher, Mutant, fault};

const QUEUE: &str = "src/algorithm/queue.rs";
const SERVE: &str = "src/algorithm/queue/serve.rs";
/// What the library does between two calls of its queue, as the models have it.
const MODEL: &str = "loom-tests/src/queue_scene.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a request that begins to wait does not look again",
        SERVE,
        &[(
            "            if frontend.serve_one() {",
            "            if seen > 0 && frontend.serve_one() {",
        )],
        Catcher::Model("q1_enqueue_against_finish"),
    ),
    fault(
        "the word to sleep on is read after the look",
        SERVE,
        &[(
            "                return seen;",
            "                return self.wake_word(slot).max(seen);",
        )],
        Catcher::Model("q1_enqueue_against_finish"),
    ),
    fault(
        "a look comes before its fence",
        SERVE,
        &[
            ("            self.look_anew(slot);\n", ""),
            (
                "                continue;\n            }\n",
                "                continue;\n            }\n            self.look_anew(slot);\n",
            ),
        ],
        Catcher::Model("q1_enqueue_against_finish"),
    ),
    fault(
        "who gets a place does not pass the next one on",
        SERVE,
        &[("                has_left = true;\n", "")],
        Catcher::Model("q1_two_places_and_two_waiters"),
    ),
    fault(
        "a request that was being placed wakes none that it was in the way of",
        SERVE,
        &[(
            "self.rows.hints().has_total_cap() && self.is_awaited_after()",
            "self.rows.hints().has_total_cap() && self.rows.hints().in_use() == 0",
        )],
        Catcher::Model("q1_enqueue_against_a_route"),
    ),
    fault(
        "a frontend that waits does not look for dead ones",
        SERVE,
        &[(">= REAP_PAUSE", ">= u64::MAX - REAP_PAUSE")],
        Catcher::Model("q4_two_dead_ones"),
    ),
    fault(
        "a wake-up is noted for ever",
        QUEUE,
        &[(
            "        self.heads[slot].woken_at.store(0, Ordering::Relaxed);\n",
            "        _ = slot;\n",
        )],
        Catcher::Model("q1_a_wakeup_that_is_under_way"),
    ),
    fault(
        "the last request in line is woken",
        QUEUE,
        &[(
            "            .min_by_key(|(key, _)| *key)\n            .map(|(key, _)| key.slot)",
            "            .max_by_key(|(key, _)| *key)\n            .map(|(key, _)| key.slot)",
        )],
        Catcher::Model("q2_of_two_that_wait"),
    ),
    fault(
        "a place below the table's cap wakes those alone that wait for its engine",
        QUEUE,
        &[(
            "        if self.rows.hints().has_total_cap() {\n            return self.first_with_room(now);\n        }\n",
            "",
        )],
        Catcher::Model("q1_enqueue_against_finish_on_another"),
    ),
    fault(
        "one that does not answer is not passed over",
        QUEUE,
        &[(
            "now.saturating_sub(woken_at) > PATIENCE",
            "now.saturating_sub(woken_at) > PATIENCE << 20",
        )],
        Catcher::Model("q4_one_that_is_stopped"),
    ),
    fault(
        "one that has just been woken is passed over",
        QUEUE,
        &[(
            "now.saturating_sub(woken_at) > PATIENCE",
            "now.saturating_add(PATIENCE) > woken_at",
        )],
        Catcher::Model("q4_one_that_is_stopped"),
    ),
    fault(
        "a head is not read again",
        QUEUE,
        &[(
            "(still == tag).then_some(Head",
            "(still == tag || still != tag).then_some(Head",
        )],
        Catcher::Model("q2_a_head_that_is_replaced"),
    ),
    fault(
        "a head that leaves stays in line",
        QUEUE,
        &[(
            "        self.heads[slot].tags[place].store(Tag::NONE, Ordering::Relaxed);\n",
            "        _ = &self.heads[slot].tags[place];\n",
        )],
        Catcher::Model("q5_cancel_against_grant"),
    ),
    fault(
        "a reap leaves the heads of the dead",
        "src/algorithm/registry.rs",
        &[(
            "        self.heads.get(slot).into_iter().for_each(Queue::clear_all);\n",
            "        let _: (fn(&HeadsRecord), _) = (Queue::clear_all, self.heads);\n",
        )],
        Catcher::Model("q4_two_dead_ones"),
    ),
    fault(
        "one more waits than may",
        QUEUE,
        &[("if seen.value() >= most {", "if seen.value() > most {")],
        Catcher::Model("q3_of_two"),
    ),
    fault(
        "a request that its class refuses stays counted in all",
        QUEUE,
        &[(
            "            self.counter().add(me, all, Amount::request(0).negated());\n",
            "",
        )],
        Catcher::Model("q3_a_class"),
    ),
    fault(
        "a request that leaves stays counted in its class",
        QUEUE,
        &[(
            "        self.counter().add(me, all + 1 + class, one);\n",
            "        _ = class;\n",
        )],
        Catcher::Model("q1_enqueue_against_finish"),
    ),
    fault(
        "a smaller class does not come first",
        QUEUE,
        &[(
            "            if key >= mine {",
            "            if key.tag.start() >= mine.tag.start() {",
        )],
        Catcher::Model("q2_a_smaller_class"),
    ),
    fault(
        "of equal tags none comes first",
        QUEUE,
        &[(
            "            if key >= mine {",
            "            if key.tag >= mine.tag {",
        )],
        Catcher::Model("q2_of_equal_tags"),
    ),
    fault(
        "a route may take what those wait for that want one engine",
        QUEUE,
        &[("            but.push(head.engines);\n", "")],
        Catcher::Model("q2_a_route_gets_a_place"),
    ),
    fault(
        "a tag is drawn twice",
        QUEUE,
        &[("start.saturating_add(cost)", "start + 0 * cost")],
        Catcher::Model("q2_tags"),
    ),
    fault(
        "in the model: a finish wakes before its place is free",
        MODEL,
        &[
            ("        self.scene.finish(slot, engine, 0);\n", ""),
            (
                "            self.wake_for(engine);\n        }\n",
                "            self.wake_for(engine);\n        }\n        self.scene.finish(slot, engine, 0);\n",
            ),
        ],
        Catcher::Model("q1_enqueue_against_finish"),
    ),
    fault(
        "in the model: who gives up does not look for the next",
        MODEL,
        &[(
            "        self.serve(frontend, true);",
            "        self.serve(frontend, false);",
        )],
        Catcher::Model("q5_cancel_against_grant"),
    ),
    fault(
        "in the model: who gives up takes its head away after it has looked for the next",
        MODEL,
        &[(
            "        self.take_out(frontend, request);\n        self.serve(frontend, true);",
            "        self.wake_next(None);\n        self.take_out(frontend, request);\n        self.serve(frontend, false);",
        )],
        Catcher::Model("q5_cancel_against_grant"),
    ),
    fault(
        "in the model: a reap wakes none",
        MODEL,
        &[(
            "        if returned.frontends > 0 {",
            "        if returned.frontends > 9 {",
        )],
        Catcher::Model("q1_reap_against_enqueue"),
    ),
];
