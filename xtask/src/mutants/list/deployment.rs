//! Connections and life of the API servers.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "two ways to write an address are two engines",
        "examples/api_server/address.rs",
        &[(
            "let name = text.to_ascii_lowercase();",
            "let name = text.to_owned();",
        )],
        Catcher::Test("http", "two_ways_to_write"),
    ),
    fault(
        "a resolver's failure is an engine's fault",
        "examples/api_server/dial.rs",
        &[(
            "ips.map_err(Failure::NoAddress)?",
            "ips.map_err(Failure::Engine)?",
        )],
        Catcher::Test("http", "an_engine_whose_address_is_unknown"),
    ),
    fault(
        "what was found last is not used while a name is looked up",
        "examples/api_server/resolve.rs",
        &[("_ if !known.addresses.is_empty() =>", "_ if false =>")],
        Catcher::Test("http", "a_resolver_that_fails_or_is_silent"),
    ),
    fault(
        "a silent address keeps the others waiting",
        "examples/api_server/dial.rs",
        &[(
            "() = alone, if addresses.len() > 0 => {}",
            "() = alone, if addresses.len() > 99 => {}",
        )],
        Catcher::Test("http", "an_engine_with_two_addresses"),
    ),
    fault(
        "engines are not asked for a sign of life",
        "examples/api_server/dial.rs",
        &[("        self.keepalive.apply(&stream);\n", "")],
        Catcher::Test("http", "an_engine_whose_host_is_gone"),
    ),
    fault(
        "clients are not asked for a sign of life",
        "examples/api_server/listener.rs",
        &[("        keepalive.apply(&socket);\n", "")],
        Catcher::Test("http", "a_client_whose_host_is_gone"),
    ),
    fault(
        "the limit of descriptors stays low",
        "examples/api_server/main.rs",
        &[("    descriptors::raise();\n", "")],
        Catcher::Test("http", "all_processes_raise"),
    ),
    fault(
        "clients get the descriptors of what is begun",
        "examples/api_server/descriptors.rs",
        &[("self.open.load(Relaxed) >= self.most", "false")],
        Catcher::Test("http", "what_is_begun_has_descriptors"),
    ),
    fault(
        "a connection is closed while its client still reads",
        "examples/api_server/worker.rs",
        &[("client.linger(|| worker.patience()).await;", "")],
        Catcher::Test("http", "an_answer_that_ends_its_connection"),
    ),
    fault(
        "the end does not wait for clients that still read",
        "examples/api_server/worker.rs",
        &[("() = worker.lingering.end() => {}", "() = ready(()) => {}")],
        Catcher::Test("http", "an_answer_on_a_connection_that_is_kept"),
    ),
    fault(
        "connections that are being closed have descriptors that clients need",
        "examples/api_server/descriptors.rs",
        &[(
            "self.open.load(Relaxed) > self.most - self.most / 4",
            "false",
        )],
        Catcher::Test("http", "connections_that_are_being_closed"),
    ),
    fault(
        "an idle connection has the limit of a request",
        "examples/api_server/connection.rs",
        &[("IDLE => limits.idle,", "IDLE => limits.head,")],
        Catcher::Test("http", "a_connection_without_a_request"),
    ),
    fault(
        "health is good until the end",
        "examples/api_server/status.rs",
        &[("has_engine && !worker.is_draining()", "has_engine")],
        Catcher::Test("http", "with_a_delay"),
    ),
    fault(
        "the delay is none",
        "examples/api_server/parent.rs",
        &[("                sleep(options.shutdown_delay).await;\n", "")],
        Catcher::Test("http", "after_the_delay"),
    ),
    fault(
        "connections outlive the delay",
        "examples/api_server/record.rs",
        &[(
            "let is_last = self.worker.is_draining();",
            "let is_last = false;",
        )],
        Catcher::Test("http", "with_a_delay"),
    ),
    fault(
        "a new worker does not know that the end is near",
        "examples/api_server/workers.rs",
        &[(
            "let mut stage = *stages.borrow_and_update();",
            "stages.borrow_and_update();\n        let mut stage = Stage::Serving;",
        )],
        Catcher::Test("http", "a_worker_that_is_started_during"),
    ),
    fault(
        "a second signal leaves the workers to finish",
        "examples/api_server/parent.rs",
        &[("    if is_forced {", "    if false {")],
        Catcher::Test("http", "a_second_signal"),
    ),
    fault(
        "the end behind a second signal waits for who reads the log",
        "examples/api_server/notice.rs",
        &[(
            "AT_ONCE: Duration = Duration::from_millis(200);",
            "AT_ONCE: Duration = LAST_LINES;",
        )],
        Catcher::Test("http", "a_second_signal_ends_a_deployment"),
    ),
    fault(
        "a setting of an engine that is given twice is the last one",
        "examples/api_server/engine_list.rs",
        &[("if is_twice {", "if false {")],
        Catcher::Test("http", "a_setting_of_an_engine"),
    ),
    fault(
        "a deployment keeps the table's place to its end",
        "examples/api_server/parent.rs",
        &[("            drop(deployment);\n", "")],
        Catcher::Test("http", "the_next_deployment_starts"),
    ),
    fault(
        "a worker counts for itself alone",
        "examples/api_server/counters.rs",
        &[(
            "        (0..WORKERS)\n",
            "        (self.own..self.own + 1)\n",
        )],
        Catcher::Test("http", "counts_are_those"),
    ),
    fault(
        "connections of the dead stay open in the counts",
        "examples/api_server/counters.rs",
        &[(
            "        counters.own().connections.store(0, Relaxed);\n",
            "",
        )],
        Catcher::Test("http", "counts_are_those"),
    ),
];
