//! Requests and answers on their way through headcount-server: framing, bodies, places, leaving.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a client that leaves before the answer is seen only by what it sends",
        "server/src/client/socket.rs",
        &[(
            "let _ = self.connection.stream.ready(Interest::PRIORITY).await;",
            "std::future::pending::<()>().await;",
        )],
        Catcher::Test("http", "a_client_that_leaves_before_the_answer"),
    ),
    fault(
        "unread bytes are taken for leaving",
        "server/src/client/socket.rs",
        &[("ready(Interest::PRIORITY)", "ready(Interest::READABLE)")],
        Catcher::Test("http", "requests_behind_one_another"),
    ),
    fault(
        "an answer under way does not see its client leave",
        "server/src/worker/response_body.rs",
        &[("if next.is_pending() {\n", "if next.is_ready() {\n")],
        Catcher::Test("http", "a_client_that_leaves_within_the_answer"),
    ),
    fault(
        "an answer that was cut looks whole to a client of old",
        "server/src/client/socket.rs",
        &[("let _ = self.connection.stream.set_zero_linger();", "")],
        Catcher::Test("http", "an_answer_that_is_cut"),
    ),
    fault(
        "a connection with two lengths is used again",
        "server/src/message/framing.rs",
        &[("    Ok(is_clear && is_new)\n", "    Ok(is_new)\n")],
        Catcher::Test("http", "a_connection_with_two_lengths"),
    ),
    fault(
        "a connection to an engine of old is used again",
        "server/src/message/framing.rs",
        &[("Ok(is_clear && is_new)", "Ok(is_clear)")],
        Catcher::Test("http", "an_engine_of_old_gets_each"),
    ),
    fault(
        "a connection goes on after a request that others may see differently",
        "server/src/message/error_response.rs",
        &[("                | Self::TransferCoding\n", "")],
        Catcher::Test("http", "end_or_coding_is_unclear_is_refused"),
    ),
    fault(
        "a length goes on beside chunks",
        "server/src/message/framing.rs",
        &[("length.filter(|_| is_clear && ", "length.filter(|_| ")],
        Catcher::Test("http", "goes_by_its_chunks"),
    ),
    fault(
        "a coding of an answer is forgotten",
        "server/src/message/framing.rs",
        &[(
            "if matches!(coding, Coding::Other | Coding::Several) {",
            "if false {",
        )],
        Catcher::Test("http", "end_or_coding_is_unclear_is_a_bad_gateway"),
    ),
    fault(
        "a body in chunks is left out where few have one",
        "server/src/message/framing.rs",
        &[(
            "            headers.insert(header::TRANSFER_ENCODING, chunked);\n",
            "            let _ = chunked;\n",
        )],
        Catcher::Test("http", "a_body_in_chunks_reaches"),
    ),
    fault(
        "an engine that has finished waits for a slow reader",
        "server/src/worker/mod.rs",
        &[(".max_buf_size(ANSWER_HELD)", ".max_buf_size(8192)")],
        Catcher::Test("http", "an_engine_that_has_finished"),
    ),
    fault(
        "a batch counts as one",
        "server/src/route/prompt/mod.rs",
        &[(
            "let requests = prompts.saturating_mul(self.answers.max(1));",
            "let requests = prompts.min(1);",
        )],
        Catcher::Test("http", "a_request_counts_what"),
    ),
    fault(
        "a batch is spread over engines",
        "server/src/route/permits.rs",
        &[(".tokens(of_each).pin(first.engine())", ".tokens(of_each)")],
        Catcher::Test("http", "several_are_placed_at_one"),
    ),
    fault(
        "a batch that fits nowhere takes a place for a moment",
        "server/src/route/room.rs",
        &[("Self::Nowhere(nearest.id)", "Self::But(Vec::new())")],
        Catcher::Test("http", "a_batch_that_is_refused_changes_nothing"),
    ),
    fault(
        "a batch looks at the caps of engines only",
        "server/src/route/room.rs",
        &[(" || !fits(left_in_all(&view))", "")],
        Catcher::Test("http", "a_batch_that_is_refused_changes_nothing"),
    ),
    fault(
        "an engine without room for a batch hides others",
        "server/src/route/permits.rs",
        &[("closed.extend(full)", "drop(full)")],
        Catcher::Test("http", "does_not_hide_one_with_room"),
    ),
    fault(
        "an estimate that is too large is refused for ever",
        "server/src/route/permits.rs",
        &[(
            "if self.tokens <= most.tokens {",
            "if self.tokens <= u32::MAX {",
        )],
        Catcher::Test("http", "pictures_and_sounds"),
    ),
    fault(
        "the engine is blamed for a slow client",
        "server/src/engine/engine_client.rs",
        &[(
            "waited.as_ref().map_or(Duration::ZERO, WaitedTime::so_far)",
            "waited.as_ref().map_or(Duration::ZERO, |_| Duration::ZERO)",
        )],
        Catcher::Test("http", "a_client_that_keeps_an_engine_waiting"),
    ),
    fault(
        "a client that drips keeps its place",
        "server/src/message/idle_timeout.rs",
        &[(
            "self.limit().saturating_sub(self.waited.so_far());",
            "self.limit();",
        )],
        Catcher::Test("http", "a_client_that_keeps_an_engine_waiting"),
    ),
    fault(
        "a body is asked for that has no place",
        "server/src/worker/proxy.rs",
        &[(
            "        room::check(&worker.router, &head.headers)\n",
            "        Ok(())\n",
        )],
        Catcher::Test("http", "a_body_is_asked_for"),
    ),
    fault(
        "an engine that closed an idle connection is given up",
        "server/src/engine/engine_client.rs",
        &[(
            "Some(again) if used_before => {",
            "Some(again) if used_before && is_unsent => {",
        )],
        Catcher::Test("http", "one_that_may_be_repeated"),
    ),
    fault(
        "a target that is none is the path of all",
        "server/src/message/framing.rs",
        &[(
            "_ => method == Method::CONNECT,",
            "_ => method != Method::TRACE,",
        )],
        Catcher::Test("http", "a_target_that_is_no_path"),
    ),
    fault(
        "a connection goes on sending what is not waited for",
        "server/src/engine/dial.rs",
        &[("self.task.abort();", "{}")],
        Catcher::Test("http", "engines_that_do_not_read::"),
    ),
    fault(
        "a host and a fragment are an empty path",
        "server/src/worker/proxy.rs",
        &[(
            "path.map(Uri::from).filter(|uri| !uri.path().is_empty());",
            "path.map(Uri::from);",
        )],
        Catcher::Test("http", "a_target_of_a_host_alone"),
    ),
    fault(
        "what only lenient readers take for JSON counts as one request",
        "server/src/route/prompt/mod.rs",
        &[(
            "if !found.is_json && json::begins_object(body) {",
            "if false {",
        )],
        Catcher::Test("http", "odd_json::"),
    ),
    fault(
        "numbers that are none are no JSON",
        "server/src/route/json.rs",
        &[("push_str(number(word))", "push_str(word)")],
        Catcher::Test("http", "json_as_python_accepts_it"),
    ),
    fault(
        "halves of surrogate pairs are no JSON",
        "server/src/route/json.rs",
        &[("(Some(0xD800..=0xDFFF), _) => ", "(Some(1), _) => ")],
        Catcher::Test("http", "json_as_python_accepts_it"),
    ),
    fault(
        "a type that is not JSON hides JSON",
        "server/src/route/permits.rs",
        &[(
            "is_media(headers) && !json::begins_object(body)",
            "is_media(headers)",
        )],
        Catcher::Test("http", "json_counts_whatever_its_type"),
    ),
    fault(
        "a number of answers with a point in a text is none",
        "server/src/route/answer_count.rs",
        &[(
            ".or_else(|| fraction().map(|count| count as u64))",
            ".or_else(|| fraction().and(None))",
        )],
        Catcher::Test("http", "json_as_python_accepts_it"),
    ),
    fault(
        "prompts that are embedded are one",
        "server/src/route/prompt/fields.rs",
        &[(
            "\"prompt_embeds\" => Field::Embedded,",
            "\"prompt_embeds\" => Field::Other,",
        )],
        Catcher::Test("http", "json_as_python_accepts_it"),
    ),
    fault(
        "texts that are ranked count as one, where there are messages too",
        "server/src/route/prompt/mod.rs",
        &[("Some(_) => self.pairs_of_texts,", "Some(_) => 0,")],
        Catcher::Test("http", "a_request_counts_as_it_does_in_the_router"),
    ),
    fault(
        "what is nested too deeply to be counted counts as one",
        "server/src/route/prompt/mod.rs",
        &[("if found.is_too_deep {", "if false {")],
        Catcher::Test("http", "nested_too_deeply"),
    ),
    fault(
        "pages are given whatever the framing",
        "server/src/report/pages.rs",
        &[
            ("    framing::check_request(head)?;\n", ""),
            (
                "_ => return Ok(None),",
                "_ => return framing::check_request(head).map(|()| None),",
            ),
        ],
        Catcher::Test("http", "bad_framing_gets_no_page"),
    ),
    fault(
        "one request fills an engine that has no cap",
        "server/src/route/permits.rs",
        &[(
            "map_or(MOST_TOKENS, |n| n.min(MOST_TOKENS));",
            "unwrap_or(u32::MAX - MOST_TOKENS + MOST_TOKENS);",
        )],
        Catcher::Test("http", "no_request_fills_an_engine"),
    ),
    fault(
        "an engine that is slow to read is taken for one that is gone",
        "server/src/keepalive.rs",
        &[(
            "Self::new(options.engine_keepalive, None)",
            "Self::new(options.engine_keepalive, Some(Duration::ZERO))",
        )],
        Catcher::Test("http", "an_engine_may_be_slow_to_read"),
    ),
    fault(
        "what gets lost on the way to an engine keeps its place",
        "server/src/keepalive.rs",
        &[(
            "got == 0 && was_asked && silent >= idle * 2",
            "got > 0 && was_asked && silent >= idle * 2",
        )],
        Catcher::Test("http", "gone_before_a_request"),
    ),
    fault(
        "an engine talks as long as it likes before it answers",
        "server/src/engine/engine_client.rs",
        &[("            connection.interim.begins();\n", "")],
        Catcher::Test("http", "talks_and_does_not_answer"),
    ),
    fault(
        "an answer is as short as what may be said before it",
        "server/src/engine/engine_client.rs",
        &[("            connection.interim.ends();\n", "")],
        Catcher::Test("http", "an_engine_may_say_that_it_works"),
    ),
];
