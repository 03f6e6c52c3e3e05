//! Connections and life of `headcount-server`.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "two ways to write an address are two engines",
        "server/src/engine/address.rs",
        &[(
            "let name = text.to_ascii_lowercase();",
            "let name = text.to_owned();",
        )],
        Catcher::Test("http", "two_ways_to_write"),
    ),
    fault(
        "a resolver's failure is an engine's fault",
        "server/src/engine/dial.rs",
        &[(
            "ips.map_err(DialError::NoAddress)?",
            "ips.map_err(DialError::Engine)?",
        )],
        Catcher::Test("http", "an_engine_whose_address_is_unknown"),
    ),
    fault(
        "what was found last is not used while a name is looked up",
        "server/src/engine/resolve.rs",
        &[("_ if !known.addresses.is_empty() =>", "_ if false =>")],
        Catcher::Test("http", "a_resolver_that_fails_or_is_silent"),
    ),
    fault(
        "a silent address keeps the others waiting",
        "server/src/engine/dial.rs",
        &[(
            "() = alone, if addresses.len() > 0 => {}",
            "() = alone, if addresses.len() > 99 => {}",
        )],
        Catcher::Test("http", "an_engine_with_two_addresses"),
    ),
    fault(
        "engines are not asked for a sign of life",
        "server/src/engine/dial.rs",
        &[("        self.keepalive.apply(&stream);\n", "")],
        Catcher::Test("http", "an_engine_whose_host_is_gone"),
    ),
    fault(
        "clients are not asked for a sign of life",
        "server/src/client/listener.rs",
        &[("        keepalive.apply(&socket);\n", "")],
        Catcher::Test("http", "a_client_whose_host_is_gone"),
    ),
    fault(
        "the limit of descriptors stays low",
        "server/src/main.rs",
        &[("    client::descriptors::raise();\n", "")],
        Catcher::Test("http", "all_processes_raise"),
    ),
    fault(
        "clients get the descriptors of what is begun",
        "server/src/client/descriptors.rs",
        &[("self.open.load(Relaxed) >= self.most", "false")],
        Catcher::Test("http", "requests_that_have_begun"),
    ),
    fault(
        "a connection is closed while its client still reads",
        "server/src/worker/mod.rs",
        &[("client.linger(|| worker.lingers_until()).await;", "")],
        Catcher::Test("http", "an_answer_that_ends_its_connection"),
    ),
    fault(
        "the end does not wait for clients that still read",
        "server/src/worker/mod.rs",
        &[("() = worker.lingering.end() => {}", "() = ready(()) => {}")],
        Catcher::Test("http", "an_answer_on_a_connection_that_is_kept"),
    ),
    fault(
        "connections that are being closed have descriptors that clients need",
        "server/src/client/descriptors.rs",
        &[(
            "self.open.load(Relaxed) > self.most - self.most / 4",
            "false",
        )],
        Catcher::Test("http", "connections_that_are_being_closed"),
    ),
    fault(
        "an idle connection has the limit of a request",
        "server/src/client/silence.rs",
        &[("IDLE => limits.idle,", "IDLE => limits.head,")],
        Catcher::Test("http", "a_connection_without_a_request"),
    ),
    fault(
        "health is good until the end",
        "server/src/report/pages.rs",
        &[("has_engine && !pages.ending.is_draining()", "has_engine")],
        Catcher::Test("http", "with_a_delay"),
    ),
    fault(
        "the delay is none",
        "server/src/parent/mod.rs",
        &[("                sleep(options.shutdown_delay).await;\n", "")],
        Catcher::Test("http", "after_the_delay"),
    ),
    fault(
        "connections outlive the delay",
        "server/src/report/record.rs",
        &[(
            "let is_last = self.recorder.ending.is_draining();",
            "let is_last = false;",
        )],
        Catcher::Test("http", "with_a_delay"),
    ),
    fault(
        "a new worker does not know that the end is near",
        "server/src/parent/workers.rs",
        &[(
            "let mut stage = *stages.borrow_and_update();",
            "stages.borrow_and_update();\n        let mut stage = Stage::Serving;",
        )],
        Catcher::Test("http", "a_worker_that_is_started_during"),
    ),
    fault(
        "a second signal leaves the workers to finish",
        "server/src/parent/mod.rs",
        &[("    if is_forced {", "    if false {")],
        Catcher::Test("http", "a_second_signal"),
    ),
    fault(
        "the end behind a second signal waits for the reader of the log",
        "server/src/log.rs",
        &[(
            "AT_ONCE: Duration = Duration::from_millis(200);",
            "AT_ONCE: Duration = LAST_LINES;",
        )],
        Catcher::Test("http", "a_second_signal_ends_a_deployment"),
    ),
    fault(
        "a setting of an engine that is given twice is the last one",
        "server/src/engine/entry.rs",
        &[("if is_twice {", "if false {")],
        Catcher::Test("http", "a_setting_of_an_engine"),
    ),
    fault(
        "a deployment keeps the table's place to its end",
        "server/src/parent/mod.rs",
        &[("            drop(deployment);\n", "")],
        Catcher::Test("http", "the_next_deployment_starts"),
    ),
    fault(
        "a worker counts for itself alone",
        "server/src/report/counters.rs",
        &[(
            "        (0..WORKERS)\n",
            "        (self.own..self.own + 1)\n",
        )],
        Catcher::Test("http", "counts_are_those"),
    ),
    fault(
        "connections of the dead stay open in the counts",
        "server/src/report/counters.rs",
        &[(
            "        counters.own().connections.store(0, Relaxed);\n",
            "",
        )],
        Catcher::Test("http", "counts_are_those"),
    ),
];
