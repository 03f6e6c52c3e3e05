//! `headcount-server`, where requests wait.

use super::{Catcher, Mutant, fault};

const STANDING: &str = "server/src/route/standing.rs";
const WAITING: &str = "server/src/route/waiting.rs";
const PROXY: &str = "server/src/worker/proxy.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "requests wait without their class",
        STANDING,
        &[("request.class(self.class).share", "request.class(0).share")],
        Catcher::Test("http", "an_earlier_class_is_served_first"),
    ),
    fault(
        "tenants have equal shares",
        STANDING,
        &[(".share(self.share)", ".share(1)")],
        Catcher::Test("http", "tenants_are_served_by_their_shares"),
    ),
    fault(
        "the field of the tenant is checked only",
        STANDING,
        &[(
            "standing.tenant = tenant(headers, name)?;",
            "tenant(headers, name)?;",
        )],
        Catcher::Test("http", "tenants_that_a_field_names"),
    ),
    fault(
        "a client steps ahead of its tenant's class",
        STANDING,
        &[(
            "standing.class.max(class(headers, name)?)",
            "class(headers, name)?",
        )],
        Catcher::Test("http", "other_keys_have_a_line"),
    ),
    fault(
        "workers are not told of other tenants",
        "server/src/parent/mod.rs",
        &[("                    self.workers.reload();\n", "")],
        Catcher::Test("http", "other_keys_have_a_line"),
    ),
    fault(
        "each wait has a time of its own",
        WAITING,
        &[(
            "queue.timeout.saturating_sub(waited.so_far())",
            "queue.timeout",
        )],
        Catcher::Test("http", "all_waits_of_a_request"),
    ),
    fault(
        "a request waits for an engine that has failed it",
        WAITING,
        &[("tokens(tokens).exclude(self.tried);", "tokens(tokens);")],
        Catcher::Test("http", "all_waits_of_a_request"),
    ),
    fault(
        "a refusal by a full queue always says a second",
        "server/src/message/error_response.rs",
        &[("clamp(1, LONGEST)", "clamp(1, 1)")],
        Catcher::Test("http", "the_hint_when_to_try_again"),
    ),
    fault(
        "a class has no bound of its own",
        "server/src/parent/engine_list.rs",
        &[(
            "max_waiting_of_class(bound.class, bound.requests)",
            "max_waiting_of_class(bound.class, 99)",
        )],
        Catcher::Test("http", "a_class_has_a_bound"),
    ),
    fault(
        "a client that leaves the queue is not seen",
        PROXY,
        &[("left = client.clone().leaves() => return Err(left),", "")],
        Catcher::Test("http", "a_client_that_leaves_is_in_the_queue"),
    ),
    fault(
        "who waits at the end is cut without a word",
        PROXY,
        &[(
            "        () = worker.ending.cuts() => Err(ErrorResponse::Shutdown),\n",
            "",
        )],
        Catcher::Test("http", "who_still_waits_when_the_time"),
    ),
    fault(
        "a body is not asked for whose request may wait",
        "server/src/route/room.rs",
        &[(
            "(Some(queue), ErrorResponse::Saturated) => queue.check(&view, headers)",
            "(Some(_), ErrorResponse::Saturated) => Err(ErrorResponse::Saturated)",
        )],
        Catcher::Test("http", "a_body_is_asked_for_if"),
    ),
    fault(
        "a batch stays at its engine though another one has room",
        WAITING,
        &[(
            "            Room::But(_) => ",
            "            Room::But(_) if !self.waited.so_far().is_zero() => None,\n            Room::But(_) => ",
        )],
        Catcher::Test("http", "a_batch_goes_to_another_engine"),
    ),
    fault(
        "a batch keeps the places of all engines",
        WAITING,
        &[("tokens(of_each).pin(engine);", "tokens(of_each);")],
        Catcher::Test("http", "others_use_the_engines"),
    ),
    fault(
        "requests that wait together cost their tenant one turn",
        "src/frontend/waiting/waiter.rs",
        &[(
            "let weight = share as f32 / self.count as f32;",
            "let weight = share as f32;",
        )],
        Catcher::Test("together", "one_request_of_the_queue"),
    ),
];
