//! Answers at odd moments: engines that break off, that send more than they should, that are silent.

use crate::case::Engine::{Close, Echo, Pause, Reset, UntilTold};
use crate::case::{Case, Client, Reads, answers, does, reply, say, sends};
use crate::replies::{INTERIM, ok};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = breaks();
    cases.extend(connections());
    cases.extend(timing());
    cases
}

fn breaks() -> Vec<Case> {
    let posts = |name| {
        sends(
            name,
            "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello",
        )
    };
    vec![
        answers("answer: cut in a length", ok("Content-Length: 9", "hello")).then(Close),
        answers(
            "answer: cut before the body of a length",
            ok("Content-Length: 9", ""),
        )
        .then(Close),
        answers(
            "answer: reset in a length",
            ok("Content-Length: 9", "hello"),
        )
        .then(Pause(100))
        .then(Reset),
        answers(
            "answer: reset in a body until close",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        )
        .then(Pause(100))
        .then(Reset),
        answers("answer: cut in the status line", "HTTP/1.1 20").then(Close),
        answers("answer: cut in the head", "HTTP/1.1 200 OK\r\nContent-Le").then(Close),
        answers(
            "answer: cut before the head's end",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n",
        )
        .then(Close),
        posts("answer to POST: none, closed").engine([Close]),
        posts("answer to POST: none, reset").engine([Reset]),
        answers("answer: none, closed", "").engine([Close]),
        answers("answer: none, reset", "").engine([Reset]),
        posts("answer to POST: closed before it is read")
            .reading(Reads::Nothing)
            .engine([Close]),
        posts("answer to POST: closed after an interim one")
            .because(INTERIM)
            .engine([reply("HTTP/1.1 102 Processing\r\n\r\n"), Close]),
    ]
}

fn connections() -> Vec<Case> {
    let good = ok("Content-Length: 9", "hello end");
    let early = "HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n";
    let large = format!(
        "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 90000\r\n\r\n{}",
        "a".repeat(90_000)
    );
    vec![
        answers(
            "answer: two answers",
            format!("{good}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"),
        ),
        answers(
            "answer: a longer body than its length",
            format!("{good}poison"),
        ),
        answers("answer: another answer after a while", &good)
            .resting(400)
            .then(Pause(100))
            .then(reply("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")),
        answers(
            "answer: bytes after the last chunk",
            ok(
                "Transfer-Encoding: chunked",
                "9\r\nhello end\r\n0\r\n\r\npoison",
            ),
        ),
        answers("answer: CRLF after a body", format!("{good}\r\n")),
        answers("answer: closed after it, not said", &good).then(Close),
        answers("answer: closed after a while, not said", &good)
            .resting(400)
            .then(Pause(100))
            .then(Close),
        answers("answer: reset after a while", &good)
            .resting(400)
            .then(Pause(100))
            .then(Reset),
        sends("answer: before the body is read", &large)
            .reading(Reads::Head)
            .engine([reply(format!("{early}\r\nhello end"))]),
        sends("answer: before the body is read, and closed", &large)
            .reading(Reads::Head)
            .engine([
                reply(format!("{early}Connection: close\r\n\r\nhello end")),
                Pause(200),
                Close,
            ]),
        does(
            "answer: before the body is sent",
            [
                say("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhe"),
                Client::Pause(500),
                say("llo"),
            ],
        )
        .reading(Reads::Head)
        .engine([reply(format!("{early}\r\nhello end"))]),
        sends(
            "answer: to two requests at once, closed after each",
            "GET /a HTTP/1.1\r\nHost: t\r\n\r\nGET /b HTTP/1.1\r\nHost: t\r\n\r\n",
        )
        .times(2)
        .engine([Echo, Close]),
    ]
}

fn timing() -> Vec<Case> {
    let event = "c\r\ndata: one\n\n\n\r\n";
    let head = ok(
        "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked",
        "",
    );
    let mut hundred = vec![reply(&head)];
    hundred.extend((0..100).flat_map(|_| [reply("2\r\nhi\r\n"), Pause(1)]));
    hundred.push(reply("3\r\nend\r\n0\r\n\r\n"));
    vec![
        answers("answer: events", "").engine([
            reply(&head),
            reply(event),
            Pause(50),
            reply(event),
            reply("3\r\nend\r\n0\r\n\r\n"),
        ]),
        answers("answer: a hundred small chunks", "").engine(hundred),
        answers("answer: byte by byte", "").engine(
            ok("Content-Length: 9", "hello end")
                .bytes()
                .flat_map(|byte| [reply([byte]), Pause(1)])
                .collect::<Vec<_>>(),
        ),
        answers("answer: none at all", "")
            .engine([UntilTold])
            .impatient(),
        answers(
            "answer: half a head, then silence",
            "HTTP/1.1 200 OK\r\nConte",
        )
        .then(UntilTold)
        .impatient(),
        answers(
            "answer: silence in a length",
            ok("Content-Length: 9", "hello"),
        )
        .then(UntilTold)
        .impatient(),
        answers("answer: silence in a stream", &head)
            .then(reply(event))
            .then(UntilTold)
            .impatient(),
        answers(
            "answer: silence in a body until close",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        )
        .then(UntilTold)
        .impatient(),
        answers(
            "answer: an interim one, then silence",
            "HTTP/1.1 102 Processing\r\n\r\n",
        )
        .because(INTERIM)
        .then(UntilTold)
        .impatient(),
        answers(
            "answer: a megabyte",
            ok("Content-Length: 1000003", &("a".repeat(1_000_000) + "end")),
        ),
    ]
}
