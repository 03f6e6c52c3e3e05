//! What lies around the library: `headcount-server`, the command, the Python package, the plugin.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a permit is kept when vLLM's own method raises",
        "python/headcount/vllm/_balance.py",
        &[(
            "            self._end(request_id, permit)\n            raise\n",
            "            raise\n",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_request_that_fails_in_vllms_own_method_is_not_counted",
        ),
    ),
    fault(
        "a permit is kept when vLLM's own method is interrupted",
        "python/headcount/vllm/_balance.py",
        &[(
            "        except BaseException:\n",
            "        except Exception:\n",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_request_that_fails_in_vllms_own_method_is_not_counted",
        ),
    ),
    fault(
        "a forked child closes what is its parent's",
        "python/headcount/vllm/_balance.py",
        &[(
            "if self._closed or os.getpid() != self._pid:",
            "if self._closed:",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_k3_a_forked_child_closes_nothing_that_is_its_parents",
        ),
    ),
    fault(
        "outputs that end no request are an error",
        "python/headcount/vllm/_client.py",
        &[("if outputs.finished_requests and (balance", "if (balance")],
        Catcher::Python("test_vllm_adapter.py::test_outputs_that_end_no_request_change_nothing"),
    ),
    fault(
        "a server that could not join fails at its first output",
        "python/headcount/vllm/_client.py",
        &[(
            "if outputs.finished_requests and (balance := balance_of(self)) is not None:\n            balance.finish(",
            "if outputs.finished_requests:\n            balance_of(self).finish(",
        )],
        Catcher::Python("test_vllm_adapter.py::test_a_server_that_cannot_join_is_as_vllm_made_it"),
    ),
    fault(
        "a session is finished when its next part cannot be sent",
        "python/headcount/vllm/_balance.py",
        &[(
            "            permit = self._sending[id(request)]\n            if permit is not None:\n                self._end(request.request_id, permit)\n",
            "            self.finish((request.request_id,))\n",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_session_whose_next_part_cannot_be_sent_stays_counted",
        ),
    ),
    fault(
        "deployments of two network namespaces share a table",
        "python/headcount/vllm/_deployment.py",
        &[(
            "{self.coordinator} {network} {self.first_rank}",
            "{self.coordinator} {self.first_rank}",
        )],
        Catcher::Python(
            "test_vllm_plugin.py::test_deployments_of_two_network_namespaces_do_not_share_a_table",
        ),
    ),
    fault(
        "an engine that is gone is taken for the socket that looks for it",
        "server/src/engine/dial.rs",
        &[(
            "if stream.local_addr()? == stream.peer_addr()? {",
            "if false {",
        )],
        Catcher::Test("http", "itself::an_engine_that_is_gone"),
    ),
    fault(
        "what another proxy said of the host is overwritten",
        "server/src/message/headers.rs",
        &[(
            "headers.entry(FORWARDED_HOST).or_insert(host);",
            "headers.insert(FORWARDED_HOST, host);",
        )],
        Catcher::Test("http", "fields_of_another_proxy"),
    ),
    fault(
        "an empty id is an id",
        "server/src/message/headers.rs",
        &[(".filter(|id| !id.is_empty())", ".filter(|_| true)")],
        Catcher::Test("http", "fields_of_another_proxy"),
    ),
    fault(
        "the host of a target goes to the engine",
        "server/src/worker/proxy.rs",
        &[("    head.uri = to_origin(&head.uri);\n", "")],
        Catcher::Test("http", "fields_of_another_proxy"),
    ),
    fault(
        "a small body has no limit",
        "server/src/message/upload.rs",
        &[(
            "            if held.len() as u64 > limit {\n",
            "            if false {\n",
        )],
        Catcher::Test("http", "a_small_body"),
    ),
    fault(
        "a body that makes no sense is the server's mistake",
        "server/src/message/error_response.rs",
        &[(
            "| Self::TransferCodings => StatusCode::BAD_REQUEST",
            "| Self::TransferCodings => StatusCode::INTERNAL_SERVER_ERROR",
        )],
        Catcher::Test("http", "a_body_that_makes_no_sense"),
    ),
    fault(
        "a client may take for ever over its head",
        "server/src/worker/mod.rs",
        &[(
            "            head: self.options.client_idle_timeout,",
            "            head: std::time::Duration::MAX / 4,",
        )],
        Catcher::Test("http", "half_a_request"),
    ),
    fault(
        "affinity prefers engines that take nothing",
        "server/src/route/affinity.rs",
        &[(
            ".filter(|engine| engine.state == EngineState::Active)",
            ".filter(|engine| engine.state != EngineState::Leaving)",
        )],
        Catcher::Test("http", "prompts_meet_elsewhere"),
    ),
    fault(
        "affinity does not hear of changes",
        "server/src/worker/mod.rs",
        &[("                worker.router.renew_affinity();\n", "")],
        Catcher::Test("http", "prompts_meet_elsewhere"),
    ),
    fault(
        "pauses add up",
        "server/src/message/idle_timeout.rs",
        &[("            self.waiting = false;\n", "")],
        Catcher::Test("http", "may_pause_again"),
    ),
    fault(
        "a hangup ends a worker",
        "server/src/process/shutdown.rs",
        &[(
            "signal(SignalKind::from_raw(RELOAD.as_raw()))?",
            "signal(SignalKind::window_change())?",
        )],
        Catcher::Test("http", "a_hangup"),
    ),
    fault(
        "health wants all engines",
        "server/src/report/pages.rs",
        &[(
            "view.engines.iter().any(|e| e.state == EngineState::Active);",
            "view.engines.iter().all(|e| e.state == EngineState::Active);",
        )],
        Catcher::Test("http", "health_is_good"),
    ),
    fault(
        "health counts the dead",
        "server/src/report/pages.rs",
        &[(".filter(|f| f.alive).count()", ".count()")],
        Catcher::Test("http", "health_is_good"),
    ),
    fault(
        "a number of answers that is too large for a number is none",
        "server/src/route/json.rs",
        &[("true => \"1e308\",", "true => \"0\",")],
        Catcher::Test("http", "a_number_of_answers_that_is_too_large"),
    ),
    fault(
        "a rest of text is no token",
        "server/src/route/prompt/mod.rs",
        &[(
            "length.div_ceil(prompts.saturating_mul(4))",
            "(length / prompts.saturating_mul(4))",
        )],
        Catcher::Test("http", "tokens_are_counted_wherever"),
    ),
    fault(
        "of a long body only the beginning counts",
        "server/src/route/prompt/mod.rs",
        &[(
            "tokens: length.div_ceil(4),",
            "tokens: (seen.len() as u64).div_ceil(4),",
        )],
        Catcher::Test("http", "longer_than_what_is_held_counts"),
    ),
    fault(
        "tokens by number do not count",
        "server/src/route/prompt/part.rs",
        &[("        self.found.lengthen(4);\n", "")],
        Catcher::Test("http", "tokens_are_counted_wherever"),
    ),
    fault(
        "parts of a message do not count",
        "server/src/route/prompt/fields.rs",
        &[("\"content\" | \"text\" =>", "\"content\" =>")],
        Catcher::Test("http", "tokens_are_counted_wherever"),
    ),
    fault(
        "the engine that broke off is asked again",
        "server/src/worker/proxy.rs",
        &[("        tried.push(permits.engine());\n", "")],
        Catcher::Test("http", "an_engine_that_broke_off_is_not_asked"),
    ),
    fault(
        "weights of the list come later",
        "server/src/parent/engine_list.rs",
        &[(
            "Engine::named(&entry.name).weight(entry.weight)",
            "Engine::named(&entry.name)",
        )],
        Catcher::Test("http", "settings_in_the_list"),
    ),
    fault(
        "want of descriptors is an engine's fault",
        "server/src/engine/dial.rs",
        &[(
            "if is_of_this_host(&error) {",
            "if is_of_this_host(&error) && error.kind() == io::ErrorKind::AddrNotAvailable {",
        )],
        Catcher::Test("http", "want_of_descriptors"),
    ),
    fault(
        "connections that are not used are kept",
        "server/src/engine/engine_client.rs",
        &[(
            "since.elapsed() < KEPT_OPEN && !connection.sender.is_closed()",
            "!connection.sender.is_closed()",
        )],
        Catcher::Test("http", "not_used_is_closed"),
    ),
    fault(
        "a table at its cap is no warning",
        "cli/src/warning.rs",
        &[("has >= u64::from(*cap)", "has > u64::from(*cap)")],
        Catcher::Test("cli", "what_is_at_a_cap"),
    ),
    fault(
        "an engine without room for tokens is not full",
        "cli/src/observed.rs",
        &[(
            "(at(engine.max_in_flight, engine.in_flight) || at(engine.max_tokens, engine.tokens))",
            "at(engine.max_in_flight, engine.in_flight)",
        )],
        Catcher::Test("cli", "what_is_at_a_cap"),
    ),
    fault(
        "the spread minds no weight",
        "cli/src/observed.rs",
        &[(
            "f64::from(e.in_flight) / f64::from(e.weight)",
            "f64::from(e.in_flight)",
        )],
        Catcher::Test("cli", "the_spread_is_by_weight"),
    ),
    fault(
        "the spread is of all engines",
        "cli/src/observed.rs",
        &[(
            ".filter(|e| e.state == EngineState::Active)",
            ".filter(|e| e.state != EngineState::Leaving)",
        )],
        Catcher::Test("cli", "the_spread_is_by_weight"),
    ),
    fault(
        "a number goes before a name",
        "cli/src/find.rs",
        &[(
            "ids.get(name).copied().or_else(by_number)",
            "by_number().or_else(|| ids.get(name).copied())",
        )],
        Catcher::Test("cli", "engines_are_drained"),
    )
    .harmless("the table refuses names such as @1, so no name is a number, too"),
    fault(
        "a file that is called as an engine is the table",
        "cli/src/table_arg.rs",
        &[("has_slash(word) && fs", "(has_slash(word) || true) && fs")],
        Catcher::Test("cli", "an_engine_goes_before_a_file"),
    ),
    fault(
        "metrics show what waits as running",
        "metrics/src/lib.rs",
        &[(
            "running.with_label_values(&label).set(stats.running.into());",
            "running.with_label_values(&label).set(stats.waiting.into());",
        )],
        Catcher::Test("cli", "a_scrape_says"),
    ),
    fault(
        "metrics show the cap on tokens as that on requests",
        "metrics/src/lib.rs",
        &[(
            "if let Some(cap) = view.max_in_flight {",
            "if let Some(cap) = view.max_tokens {",
        )],
        Catcher::Test("cli", "a_scrape_says"),
    ),
    fault(
        "metrics show a frontend's requests as its tokens",
        "metrics/src/lib.rs",
        &[(
            ".set(frontend.tokens as f64)",
            ".set(frontend.in_flight as f64)",
        )],
        Catcher::Test("cli", "a_scrape_says"),
    ),
    fault(
        "metrics show no weight",
        "metrics/src/lib.rs",
        &[(".set(exact(engine.weight))", ".set(1.0)")],
        Catcher::Test("cli", "a_scrape_says"),
    ),
    fault(
        "metrics show milliseconds as seconds",
        "metrics/src/lib.rs",
        &[(
            "|since| since.as_secs_f64()",
            "|since| since.as_millis() as f64",
        )],
        Catcher::Test("cli", "a_scrape_says"),
    ),
    fault(
        "top shows the least busy first",
        "cli/src/top/app.rs",
        &[("b.total_cmp(a)", "a.total_cmp(b)")],
        Catcher::Test("cli", "the_busiest_comes_first"),
    ),
    fault(
        "what a cache holds does not reach the table",
        "python/headcount/vllm/_balance.py",
        &[("if rest else 0.0", "if False else 0.0")],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_broadcast_of_all_engines_is_published_and_no_other",
        ),
    ),
    fault(
        "a cache that is more than full is an error",
        "python/headcount/vllm/_balance.py",
        &[("min(max(float(rest[0]), 0.0), 1.0)", "float(rest[0])")],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_broadcast_of_all_engines_is_published_and_no_other",
        ),
    ),
    fault(
        "a broadcast of fewer engines is published",
        "python/headcount/vllm/_balance.py",
        &[(
            "if publisher is not None and len(counts) == len(self._numbers):",
            "if publisher is not None:",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_broadcast_of_all_engines_is_published_and_no_other",
        ),
    ),
    fault(
        "embeddings have no length",
        "python/headcount/vllm/_balance.py",
        &[("prompt = getattr(request, \"prompt_embeds\", None)", "pass")],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_prompt_of_embeddings_counts_as_long_as_it_is",
        ),
    ),
    fault(
        "a server that has left goes on reaping",
        "python/headcount/vllm/_balance.py",
        &[("            self._reaper.stop()\n", "")],
        Catcher::Python("test_vllm_adapter.py::test_the_last_server_removes_the_table"),
    ),
    fault(
        "a server whose end fails keeps its place",
        "python/headcount/vllm/_client.py",
        &[(
            "        try:\n            return shutdown(self, *args, **kwargs)\n        finally:\n            if",
            "        shutdown(self, *args, **kwargs)\n        if True:\n            if",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_server_leaves_the_table_though_vllms_own_end_fails",
        ),
    ),
    fault(
        "a server that is never ended keeps its place",
        "python/headcount/vllm/_client.py",
        &[("    weakref.finalize(client, balance.close)\n", "")],
        Catcher::Python(
            "test_vllm_adapter.py::test_a_server_that_nobody_ends_leaves_with_its_client",
        ),
    ),
    fault(
        "a lock that is a link is followed",
        "python/headcount/vllm/_deployment.py",
        &[(" | os.O_NOFOLLOW", "")],
        Catcher::Python("test_vllm_plugin.py::test_a_lock_that_is_a_link_is_not_followed"),
    ),
    fault(
        "an empty path is a path",
        "python/headcount/vllm/_settings.py",
        &[(
            "environment.get(\"HEADCOUNT_VLLM_PATH\") or None",
            "environment.get(\"HEADCOUNT_VLLM_PATH\")",
        )],
        Catcher::Python("test_vllm_plugin.py::test_what_the_environment_says"),
    ),
    fault(
        "a choice that takes other arguments is replaced",
        "python/headcount/vllm/_shape.py",
        &[(
            "if list(inspect.signature(choose).parameters) != [\"self\", \"request\"]:",
            "if False:",
        )],
        Catcher::Python("test_vllm_adapter.py::test_a_class_of_another_shape_is_left_alone"),
    ),
    fault(
        "an attribute of the class is replaced",
        "python/headcount/vllm/_shape.py",
        &[("if hasattr(client, \"lb_engines\"):", "if False:")],
        Catcher::Python("test_vllm_adapter.py::test_a_class_of_another_shape_is_left_alone"),
    ),
    fault(
        "outputs that are a plain method are replaced",
        "python/headcount/vllm/_shape.py",
        &[("if not isinstance(finish, staticmethod) or not", "if not")],
        Catcher::Python("test_vllm_adapter.py::test_a_class_of_another_shape_is_left_alone"),
    ),
];
