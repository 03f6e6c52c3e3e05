//! The life of `headcount-server`: what it reads at its start and at a reload, and what it writes.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a list that begins with a byte order mark makes no sense",
        "server/src/list_file.rs",
        &[(
            "text.strip_prefix('\\u{feff}')",
            "text.strip_prefix('\\u{fffe}')",
        )],
        Catcher::Test("http", "a_list_may_begin"),
    ),
    fault(
        "a list that is a pipe keeps the parent waiting",
        "server/src/list_file.rs",
        &[("        .custom_flags(libc::O_NONBLOCK)\n", "")],
        Catcher::Test("http", "a_list_that_is_a_pipe"),
    ),
    fault(
        "a hangup without a file undoes what an operator has changed",
        "server/src/parent/mod.rs",
        &[(
            "            None => Err(Error::NoFile),\n",
            "            None => engine_list::read(self.options).and_then(|list| {\n                engine_list::apply(self.deployment, &list.unwrap_or_default(), self.options)\n            }),\n",
        )],
        Catcher::Test("http", "without_a_file"),
    ),
    fault(
        "a row that is no address is tried for ever",
        "server/src/engine/dial.rs",
        &[(
            "DialError::Engine(io::Error::other(why)))?;",
            "DialError::NoAddress(io::Error::other(why)))?;",
        )],
        Catcher::Test("http", "a_row_that_is_no_address"),
    ),
    fault(
        "a cap in tokens that has no effect is said like any other",
        "server/src/parent/outside_changes.rs",
        &[("cap.is_some() && !counts_tokens", "false")],
        Catcher::Test("http", "a_cap_in_tokens_is_said"),
    ),
    fault(
        "a list of engines in one option is taken for a path",
        "server/src/engine/address.rs",
        &[("rest.contains([',', ';'])", "rest.contains(';')")],
        Catcher::Test("http", "engines_that_are_given_in_another_form"),
    ),
    fault(
        "workers wait for ever for room that a table never has",
        "server/src/parent/mod.rs",
        &[(
            "usize::from(options.workers) > dimensions.max_frontends",
            "dimensions.max_frontends == 0",
        )],
        Catcher::Test("http", "a_table_that_is_too_small"),
    ),
    fault(
        "what an operator does to the caps of all is not said",
        "server/src/parent/outside_changes.rs",
        &[(
            "changes_of_caps(before.total, self.total)",
            "changes_of_caps(self.total, self.total)",
        )],
        Catcher::Test("http", "changes_by_another_process"),
    ),
    fault(
        "a full pipe stops the process that writes",
        "server/src/log.rs",
        &[("        if !has_thread {\n", "        if has_thread {\n")],
        Catcher::Test("http", "the_end_does_not_wait"),
    ),
    fault(
        "lines wait without end",
        "server/src/log.rs",
        &[(
            "self.is_full |= self.entries.len() >= WAITING;",
            "self.is_full |= self.entries.len() >= usize::MAX;",
        )],
        Catcher::Test("http", "an_access_log_that_is_not_read"),
    ),
    fault(
        "the end loses lines",
        "server/src/log.rs",
        &[(
            "        while queue.is_busy() {\n",
            "        while queue.is_writing {\n",
        )],
        Catcher::Test("http", "the_end_loses_no_line"),
    ),
    fault(
        "what is missing in the log is not said at the end",
        "server/src/log.rs",
        &[("    if left > 0 {\n", "    if false {\n")],
        Catcher::Test("http", "the_end_does_not_wait"),
    ),
    fault(
        "a line of the log is longer than a pipe takes in one piece",
        "server/src/report/record.rs",
        &[("const ID: usize = 512;", "const ID: usize = 51_200;")],
        Catcher::Test("http", "lines_of_the_access_log"),
    ),
    fault(
        "a client that leaves has no engine in the log",
        "server/src/worker/proxy.rs",
        &[("            at.set(engine);\n", "")],
        Catcher::Test("http", "a_client_that_leaves_before_the_answer_has"),
    ),
    fault(
        "the end tells no client that it cuts its request",
        "server/src/worker/mod.rs",
        &[("    worker.ending.cut();\n", "")],
        Catcher::Test("http", "requests_cut_by_the_drain_timeout"),
    ),
    fault(
        "a second signal loses the lines of what it cuts",
        "server/src/parent/workers.rs",
        &[(
            "child::cut(&mut worker).await;",
            "let _ = worker.kill().await;",
        )],
        Catcher::Test("http", "a_second_signal_loses_no_line"),
    ),
    fault(
        "standard output has more than the access log",
        "server/src/parent/mod.rs",
        &[("        say(line)\n", "        tell(line)\n")],
        Catcher::Test("http", "standard_output_has_nothing_but"),
    ),
    fault(
        "a supervisor that does not read stops the parent",
        "server/src/parent/systemd.rs",
        &[("            socket.set_nonblocking(true)?;\n", "")],
        Catcher::Test("http", "a_supervisor_that_does_not_read"),
    ),
    fault(
        "a failure to accept is said again after each success",
        "server/src/client/acceptor.rs",
        &[(
            "                    self.in_a_row.set(self.in_a_row.get().saturating_sub(1));\n",
            "                    self.in_a_row.set(self.in_a_row.get().saturating_sub(1));\n                    self.failures.borrow_mut().clear();\n",
        )],
        Catcher::Test("http", "cannot_be_accepted"),
    ),
    fault(
        "a mock engine answers any path",
        "server/src/mock/mod.rs",
        &[(
            "            _ => return Ok(not_found(&path)),\n",
            "            _ => {}\n",
        )],
        Catcher::Test("http", "an_unknown_path_of_a_mock_engine"),
    ),
];
