//! The example router, the Python package and the plugin.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "the router does not say when to come back",
        "python/examples/client.py",
        &[(
            "    if error.status == 503:\n",
            "    if error.status == 504:\n",
        )],
        Catcher::Python("test_router.py::test_an_engine_that_does_not_answer_is_passed_over"),
    ),
    fault(
        "the router counts no tokens",
        "python/examples/cost.py",
        &[("return 1, min(-(-len(body) // 4), MEDIA)", "return 1, 0")],
        Catcher::Python("test_router.py::test_an_engine_that_does_not_answer_is_passed_over"),
    ),
    fault(
        "the router says that all is well",
        "python/examples/router.py",
        &[("head(response.status, ", "head(200, ")],
        Catcher::Python("test_router.py::test_an_engine_that_does_not_answer_is_passed_over"),
    ),
    fault(
        "the router tells a client to come back that never gets in",
        "python/examples/router.py",
        &[("        if not error.passes:\n", "        if False:\n")],
        Catcher::Python("test_router.py::test_several_go_to_one_engine_all_or_none"),
    ),
    fault(
        "the router keeps a permit when an engine breaks off",
        "python/examples/router.py",
        &[(
            "    finally:\n        for permit in permits:\n            permit.release()\n",
            "    except ZeroDivisionError:\n        pass\n",
        )],
        Catcher::Python("test_router.py::test_a_request_that_its_engine_breaks_off_is_not_counted"),
    ),
    fault(
        "the router asks once for its client's end, and does not read on",
        "python/examples/client.py",
        &[("anyio.move_on_after(0.5)", "anyio.move_on_after(1e9)")],
        Catcher::Python(
            "test_router.py::test_a_client_that_leaves_is_noticed_while_its_engine_is_silent",
        ),
    ),
    fault(
        "the router does not look for its client's end",
        "python/examples/router.py",
        &[(
            "            tasks.start_soon(until_left, receive, tasks.cancel_scope)\n",
            "",
        )],
        Catcher::Python(
            "test_router.py::test_a_client_that_leaves_is_noticed_while_its_engine_is_silent",
        ),
    ),
    fault(
        "the router spreads the prompts of a request over engines",
        "python/examples/router.py",
        &[(
            "frontend.route_many(places - 1, tokens, pin=permits[0].engine)",
            "frontend.route_many(places - 1, tokens)",
        )],
        Catcher::Python("test_router.py::test_several_go_to_one_engine_all_or_none"),
    ),
    fault(
        "the router lets an answer that was broken off look whole",
        "python/examples/router.py",
        &[(
            "                if not begun:\n                    await refuse(to_client, error)\n",
            "                if not begun:\n                    await refuse(to_client, error)\n                await send({\"type\": \"http.response.body\"})\n",
        )],
        Catcher::Python(
            "test_router_messages.py::test_an_answer_that_its_engine_breaks_off_does_not_look_whole",
        ),
    ),
    fault(
        "the router keeps connections, and what lies unread on them",
        "python/examples/exchange.py",
        &[
            (
                "max_keepalive_connections=0",
                "max_keepalive_connections=None",
            ),
            (
                "        headers.append((b\"connection\", b\"close\"))\n",
                "",
            ),
        ],
        Catcher::Python(
            "test_router_messages.py::test_what_an_engine_sends_beyond_an_answer_reaches_no_other_client",
        ),
    ),
    fault(
        "the router asks engines as a proxy is asked",
        "python/examples/client.py",
        &[(
            "if colon and scheme.lower() in",
            "if not colon and scheme in",
        )],
        Catcher::Python(
            "test_router_messages.py::test_a_target_is_brought_to_the_form_for_engines_or_refused",
        ),
    ),
    fault(
        "the router asks engines for tunnels",
        "python/examples/client.py",
        &[("if method == \"CONNECT\":", "if method == \"connect\":")],
        Catcher::Python(
            "test_router_messages.py::test_a_target_is_brought_to_the_form_for_engines_or_refused",
        ),
    ),
    fault(
        "the router lets parts of an answer wait for each other",
        "python/examples/worker.py",
        &[("    send_at_once()\n", "")],
        Catcher::Python(
            "test_router_messages.py::test_a_part_of_an_answer_does_not_wait_for_the_one_before_to_be_confirmed",
        ),
    ),
    fault(
        "the router takes an engine's name for an address, whatever it is",
        "python/examples/exchange.py",
        &[("url = address(engine)", "url = httpcore.URL(engine)")],
        Catcher::Python("test_router_messages.py::test_a_row_that_is_no_address_is_passed_over"),
    ),
    fault(
        "the router reads large bodies on its event loop",
        "python/examples/cost.py",
        &[(
            "return await asyncio.get_running_loop().run_in_executor(READER, cost_of_large, body)",
            "return cost_of_large(body)",
        )],
        Catcher::Python("test_router.py::test_a_large_body_does_not_stop_other_requests"),
    ),
    fault(
        "the router reads bodies of any number of parts",
        "python/examples/cost.py",
        &[("> MOST_PARTS:", "> len(body):")],
        Catcher::Python("test_router.py::test_a_large_body_does_not_stop_other_requests"),
    ),
    fault(
        "the router writes on when an engine has answered and reads no more",
        "python/examples/network.py",
        &[("if self.get_extra_info(\"is_readable\"):", "if False:")],
        Catcher::Python(
            "test_router_messages.py::test_an_answer_that_comes_before_the_body_was_read_is_passed_on",
        ),
    ),
    fault(
        "the router counts one answer where a number is too large for a float",
        "python/examples/cost.py",
        &[("return sys.maxsize if", "return 0 if")],
        Catcher::Python("test_router.py::test_what_cannot_be_counted_is_refused"),
    ),
    fault(
        "the router counts the first prompt that it knows, whatever its endpoint takes",
        "python/examples/cost.py",
        &[(
            "prompts = max(several(asked.get(name), False) for name in PROMPTS)",
            "prompts = next(filter(None, (several(asked.get(name), False) for name in PROMPTS)), 0)",
        )],
        Catcher::Python("test_router.py::test_a_request_counts_as_many_as_its_engine_runs"),
    ),
    fault(
        "the router counts a prompt in an empty list",
        "python/examples/cost.py",
        &[("return len(prompt)\n", "return max(1, len(prompt))\n")],
        Catcher::Python("test_router.py::test_a_request_counts_as_many_as_its_engine_runs"),
    ),
    fault(
        "the router reads no numbers that are written as texts or fractions",
        "python/examples/cost.py",
        &[(
            "        return int(float(value))\n",
            "        return int(float(value)) if value == int(str(value)) else 0\n",
        )],
        Catcher::Python("test_router.py::test_a_request_counts_as_many_as_its_engine_runs"),
    ),
    fault(
        "the router counts one for what it cannot count",
        "python/examples/cost.py",
        &[(
            "        raise RefusedError(400, \"bad_request\", \"this JSON is nested too deeply\") from error\n",
            "        del error\n",
        )],
        Catcher::Python("test_router.py::test_what_cannot_be_counted_is_refused"),
    ),
    fault(
        "the tokens of a router's requests run over",
        "python/examples/cost.py",
        &[("((1 << 32) - 1) // MOST_PER_ENGINE", "1 << 31")],
        Catcher::Python(
            "test_router.py::test_the_tokens_of_all_requests_fit_into_what_counts_them",
        ),
    ),
    fault(
        "the router passes on a length that the chunks make wrong",
        "python/examples/exchange.py",
        &[(
            "b\"transfer-encoding\" in values or status == 204",
            "status == 204",
        )],
        Catcher::Python("test_router_messages.py::test_responses_reach_the_client_as_they_came"),
    ),
    fault(
        "the router says how long nothing is",
        "python/examples/exchange.py",
        &[(" or status == 204", "")],
        Catcher::Python("test_router_messages.py::test_responses_reach_the_client_as_they_came"),
    ),
    fault(
        "an id that is used again is taken for a session",
        "python/headcount/vllm/_balance.py",
        &[("if self._has_sessions and request_id", "if request_id")],
        Catcher::Python(
            "test_vllm_adapter.py::test_an_id_used_again_while_the_old_request_is_aborted_counts_twice",
        ),
    ),
    fault(
        "an end is that of the oldest request of an id, wherever it was",
        "python/headcount/vllm/_balance.py",
        &[("if number is None or permit.engine == number:", "if True:")],
        Catcher::Python(
            "test_vllm_adapter.py::test_an_id_used_again_while_the_old_request_is_aborted_counts_twice",
        ),
    ),
    fault(
        "what cannot be sent ends the oldest request of its id",
        "python/headcount/vllm/_balance.py",
        &[(
            "                self._end(request.request_id, permit)\n            raise",
            "                self.finish((request.request_id,))\n            raise",
        )],
        Catcher::Python(
            "test_vllm_adapter.py::test_an_id_used_again_that_cannot_be_sent_leaves_the_old_request_counted",
        ),
    ),
    fault(
        "a lock that another user has made for everybody is used",
        "python/headcount/vllm/_deployment.py",
        &[(
            "return os.fstat(found).st_uid == os.geteuid()",
            "return True",
        )],
        Catcher::Python(
            "test_vllm_plugin.py::test_a_name_that_another_user_has_taken_is_left_to_them",
        ),
    ),
    fault(
        "a lock that another user keeps to themselves is an error",
        "python/headcount/vllm/_deployment.py",
        &[(
            "        except PermissionError:\n            return False\n        except OSError:\n            if os.lstat(lock).st_uid == os.geteuid():\n                raise  # a link, say, which this user should know of\n            return False\n",
            "        except ZeroDivisionError:\n            return False\n",
        )],
        Catcher::Python(
            "test_vllm_plugin.py::test_a_user_who_is_root_in_a_namespace_has_tables_of_their_own",
        ),
    ),
    fault(
        "True is a number of engines",
        "python/src/engine.rs",
        &[(
            "let is_number = !object.is_instance_of::<PyBool>() && object",
            "let is_number = object.is_instance_of::<PyBool>() || object",
        )],
        Catcher::Python("test_arguments.py::test_engines_that_cannot_be_are_told_in_pythons_words"),
    ),
    fault(
        "an error of the system has no errno",
        "python/src/error.rs",
        &[(
            "        fields.push((\"errno\", Field::Number(errno as u64)));\n",
            "",
        )],
        Catcher::Python("test_errors.py::test_errors_of_the_system_have_what_an_oserror_has"),
    ),
    fault(
        "async with does not end a permit",
        "python/src/permit.rs",
        &[(
            "        self.release();\n        Ready::new(py, None)\n",
            "        Ready::new(py, None)\n",
        )],
        Catcher::Python("test_frontends.py::test_what_with_ends_async_with_ends_too"),
    ),
    fault(
        "a cap that is not given is taken away",
        "python/src/table.rs",
        &[(
            "self.0.set_max_tokens(engine, tokens)",
            "self.0.set_caps(engine, None, tokens)",
        )],
        Catcher::Python("test_engines.py::test_a_cap_that_is_not_given_stays"),
    ),
    fault(
        "a table's cap on tokens is its cap on requests",
        "python/src/table.rs",
        &[(
            "self.0.set_total_max_tokens(cap)",
            "self.0.set_total_max_in_flight(cap)",
        )],
        Catcher::Python(
            "test_engines.py::test_a_cap_of_the_whole_table_is_changed_without_the_other",
        ),
    ),
    fault(
        "what a table was created with can be changed, it is said",
        "python/headcount/_view.py",
        &[(
            "self.option not in (\"max_engines\", \"max_frontends\", \"threads\", \"mode\")",
            "self.option != \"mode\"",
        )],
        Catcher::Python("test_deploying.py::test_what_apply_would_change_is_told_and_not_changed"),
    ),
    fault(
        "a table that was opened for reading is opened for writing elsewhere",
        "python/headcount/_pickle.py",
        &[(
            "Table.open_read_only if read_only else Table.open",
            "Table.open",
        )],
        Catcher::Python("test_processes.py::test_a_table_can_be_given_to_a_process"),
    ),
    fault(
        "a router takes the table of another one",
        "python/examples/worker.py",
        &[(
            "            raise  # the table of another router\n",
            "            pass\n",
        )],
        Catcher::Python(
            "test_router.py::test_a_router_takes_over_a_table_that_is_not_used_and_no_other",
        ),
    ),
    fault(
        "a router that is stopped leaves a dead frontend",
        "python/examples/worker.py",
        &[(
            "    with table.reap_every(1.0), table.join() as frontend:\n",
            "    frontend = table.join()\n    with table.reap_every(1.0):\n",
        )],
        Catcher::Python("test_router.py::test_a_router_that_is_stopped_leaves_no_dead_frontend"),
    ),
    fault(
        "a setting of the router that is no number is a traceback",
        "python/examples/settings.py",
        &[(
            "    except ValueError:\n        pass\n    wrong.append(f\"{name} is {found!r}; give a whole",
            "    except ZeroDivisionError:\n        pass\n    wrong.append(f\"{name} is {found!r}; give a whole",
        )],
        Catcher::Python(
            "test_router_messages.py::test_a_setting_that_cannot_be_is_told_in_one_sentence",
        ),
    ),
    fault(
        "a frontend that is closed keeps its place",
        "python/src/frontend.rs",
        &[(
            "self.place.bind(py).set_item(0, py.None())",
            "self.place.bind(py).append(py.None())",
        )],
        Catcher::Python("test_frontends.py::test_a_frontend_leaves_when_it_is_closed"),
    ),
    fault(
        "async with does not close a frontend",
        "python/src/frontend.rs",
        &[("        self.close(py)?;\n", "")],
        Catcher::Python("test_frontends.py::test_what_with_ends_async_with_ends_too"),
    ),
    fault(
        "an empty list of engines leaves them as they are",
        "python/src/options.rs",
        &[("let none = options.engines(0);", "let none = options;")],
        Catcher::Python("test_deploying.py::test_a_living_table_is_brought_to_a_configuration"),
    ),
];
