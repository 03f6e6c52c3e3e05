//! Clients that are slow, that shut down their sending side, and that leave.

use crate::case::Client::{HalfClose, Holds, Leave, Pause, Reset, UntilAnswered, UntilAsked};
use crate::case::Engine::{self, UntilTold};
use crate::case::{Case, Client, does, reply, say};
use crate::framing::{LARGE, TOO_SLOW};

/// The beginning of a longer answer.
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n6\r\ndata:1\r\n";
const GET: &str = "GET /a HTTP/1.1\r\nHost: t\r\n\r\n";
const POST: &str = "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n";
const CHUNKED: &str = "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = slow();
    cases.extend(half_closed());
    cases.extend(left_early());
    cases.extend(left_in_large_bodies());
    cases.extend(left_waiting());
    cases.extend(left_in_stream());
    cases
}

fn slow() -> Vec<Case> {
    vec![
        does("a connection, and nothing on it", [Holds(0)]).impatient(),
        does("half a head, then silence", [say(&GET[..20]), Holds(0)]).impatient(),
        does("a head, then silence", [say(POST), Pause(200), Holds(0)])
            .because(TOO_SLOW)
            .impatient(),
        does(
            "half a body, then silence",
            [say(POST), say("he"), Pause(200), Holds(0)],
        )
        .because(TOO_SLOW)
        .impatient(),
        does(
            "half the chunks, then silence",
            [say(CHUNKED), say("2\r\nhe\r\n"), Pause(200), Holds(0)],
        )
        .because(TOO_SLOW)
        .impatient(),
        does(
            "a head byte by byte, for longer than a pause may be",
            drip(GET, 60),
        )
        .impatient(),
    ]
}

/// So many milliseconds after each byte.
fn drip(text: &str, pause: u64) -> Vec<Client> {
    text.bytes()
        .flat_map(|byte| [say([byte]), Pause(pause)])
        .collect()
}

fn half_closed() -> Vec<Case> {
    let whole_post = format!("{POST}hello");
    vec![
        does(
            "a request, and the sending side shut down",
            [say(GET), HalfClose],
        ),
        does(
            "a request with a body, and the sending side shut down",
            [say(&whole_post), HalfClose],
        ),
        does("nothing, and the sending side shut down", [HalfClose]),
        does(
            "half a head, and the sending side shut down",
            [say(&GET[..20]), HalfClose],
        ),
        does(
            "half a body, and the sending side shut down",
            [say(POST), say("he"), HalfClose],
        )
        .because("the client can still read, and learns that its body broke off"),
        does(
            "half the chunks, and the sending side shut down",
            [say(CHUNKED), say("2\r\nhe\r\n"), HalfClose],
        )
        .because("the client can still read, and learns that its body broke off"),
        does(
            "the sending side shut down while waiting",
            [say(GET), UntilAsked, HalfClose],
        )
        .engine([Engine::Pause(500), Engine::Echo]),
        does(
            "the sending side shut down in the stream",
            [say(GET), UntilAnswered, HalfClose],
        )
        .engine([
            reply(STREAM),
            Engine::Pause(500),
            reply("3\r\nend\r\n0\r\n\r\n"),
        ]),
    ]
}

fn left_early() -> Vec<Case> {
    vec![
        does("nothing, and left", [Leave]),
        does("nothing, and reset", [Reset]),
        does(
            "half a head, and left",
            [say(&GET[..20]), Pause(50), Holds(0), Leave],
        ),
        does(
            "half a head, and reset",
            [say(&GET[..20]), Pause(50), Reset],
        ),
        does(
            "a head without its body, and left",
            [say(POST), Pause(300), Holds(0), Leave],
        ),
        does(
            "half a body, and left",
            [say(POST), say("he"), Pause(300), Holds(0), Leave],
        ),
        does(
            "half a body, and reset",
            [say(POST), say("he"), Pause(300), Holds(0), Reset],
        ),
        does(
            "half the chunks, and left",
            [
                say(CHUNKED),
                say("2\r\nhe\r\n"),
                Pause(300),
                Holds(0),
                Leave,
            ],
        ),
    ]
}

/// More than the collected part of a body, and then nothing.
fn left_in_large_bodies() -> Vec<Case> {
    let length = format!(
        "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n",
        LARGE + 1
    );
    let body = "a".repeat(LARGE);
    let chunk = format!("{LARGE:x}\r\n{body}\r\n");
    let cut = |name, head: &str, body: &str, end: Client| {
        does(name, [say(head), say(body), Pause(300), end])
    };
    vec![
        cut("a large body, cut, and left", &length, &body, Leave),
        cut("a large body, cut, and reset", &length, &body, Reset),
        cut(
            "a large body, cut, and the sending side shut down",
            &length,
            &body,
            HalfClose,
        ),
        cut("large chunks, cut, and left", CHUNKED, &chunk, Leave),
        cut("large chunks, cut, and reset", CHUNKED, &chunk, Reset),
        cut(
            "large chunks, cut, and the sending side shut down",
            CHUNKED,
            &chunk,
            HalfClose,
        ),
        cut("a large body, then silence", &length, &body, Pause(0))
            .because(TOO_SLOW)
            .impatient(),
        cut("large chunks, then silence", CHUNKED, &chunk, Pause(0))
            .because(TOO_SLOW)
            .impatient(),
    ]
}

fn left_waiting() -> Vec<Case> {
    let waiting = |name, sent: &str, end: Client| {
        does(name, [say(sent), UntilAsked, Holds(1), end]).engine([UntilTold])
    };
    let whole_post = format!("{POST}hello");
    vec![
        waiting("left while waiting", GET, Leave),
        waiting("reset while waiting", GET, Reset),
        waiting("left while waiting, after a body", &whole_post, Leave),
        waiting(
            "left while waiting, after chunks",
            &format!("{CHUNKED}5\r\nhello\r\n0\r\n\r\n"),
            Leave,
        ),
        waiting(
            "left while waiting, with CRLF unread",
            &format!("{whole_post}\r\n"),
            Leave,
        ),
        waiting(
            "left while waiting, with a request unread",
            &format!("{GET}{GET}"),
            Leave,
        ),
        waiting(
            "left while waiting, with half a request unread",
            &format!("{GET}GET /b"),
            Leave,
        ),
        waiting(
            "left while waiting, with much unread",
            &format!(
                "{whole_post}{}",
                "GET /b HTTP/1.1\r\nHost: t\r\n\r\n".repeat(2000)
            ),
            Leave,
        ),
        waiting(
            "reset while waiting, with a request unread",
            &format!("{GET}{GET}"),
            Reset,
        ),
        does(
            "left while waiting, after a while",
            [say(GET), UntilAsked, Pause(300), Holds(1), Leave],
        )
        .engine([UntilTold]),
    ]
}

fn left_in_stream() -> Vec<Case> {
    let stream = |name, sent: &str, end: Client| {
        does(name, [say(sent), UntilAnswered, Holds(1), end]).engine([reply(STREAM), UntilTold])
    };
    let talks: Vec<_> = (0..40)
        .flat_map(|_| [reply("6\r\ndata:2\r\n"), Engine::Pause(20)])
        .collect();
    vec![
        stream("left in a stream that is silent", GET, Leave),
        stream("reset in a stream that is silent", GET, Reset),
        stream(
            "left in a stream that is silent, with a request unread",
            &format!("{GET}{GET}"),
            Leave,
        ),
        does(
            "left in a stream that goes on",
            [say(GET), UntilAnswered, Holds(1), Leave],
        )
        .engine([vec![reply(STREAM)], talks, vec![UntilTold]].concat()),
        does(
            "left in an answer with a length",
            [say(GET), UntilAnswered, Holds(1), Leave],
        )
        .engine([
            reply("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"),
            UntilTold,
        ]),
        does(
            "left in an answer until close",
            [say(GET), UntilAnswered, Holds(1), Leave],
        )
        .engine([
            reply("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"),
            UntilTold,
        ]),
        does(
            "left after an interim answer",
            [say(GET), UntilAsked, Pause(50), Holds(1), Leave],
        )
        .engine([reply("HTTP/1.1 102 Processing\r\n\r\n"), UntilTold]),
    ]
}
