//! Bodies longer than the collected part, and several requests on one connection.

use crate::case::{Case, Client, Engine, does, pauses, reply, say, sends};
use crate::framing::{LARGE, SMUGGLED, post};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = large();
    cases.extend(several());
    cases
}

/// Bodies that are passed on before they are complete.
fn large() -> Vec<Case> {
    let part = SMUGGLED.repeat(LARGE / 2 / SMUGGLED.len());
    let chunk = format!("{:x}\r\n{part}\r\n", part.len());
    let head = post("Transfer-Encoding: chunked", "");
    let length = post(&format!("Content-Length: {}", 2 * part.len()), "");
    let get = "GET /b HTTP/1.1\r\nHost: t\r\n\r\n";
    vec![
        sends("a large body", format!("{length}{part}{part}")),
        sends("large chunks", format!("{head}{chunk}{chunk}0\r\n\r\n")),
        sends(
            "large chunks and trailers",
            format!("{head}{chunk}{chunk}0\r\nX-A: 1\r\n\r\n"),
        ),
        sends(
            "large chunks, one more of no size",
            format!("{head}{chunk}{chunk}xyz\r\na\r\n"),
        ),
        sends(
            "a large body and a request",
            format!("{length}{part}{part}{get}"),
        )
        .times(2),
        sends(
            "large chunks and a request",
            format!("{head}{chunk}{chunk}0\r\n\r\n{get}"),
        )
        .times(2),
        does(
            "a large body before and after a pause",
            [say(&length), say(&part), Client::Pause(300), say(&part)],
        ),
        does(
            "large chunks before and after a pause",
            [
                say(&head),
                say(&chunk),
                say(&chunk),
                Client::Pause(300),
                say("0\r\n\r\n"),
            ],
        ),
        does(
            "chunks that are too large after a pause",
            [
                say(&head),
                say(&chunk),
                say(&chunk),
                Client::Pause(300),
                say(chunk.repeat(10) + "0\r\n\r\n"),
            ],
        ),
        does(
            "large chunks, to an engine of HTTP/1.0 that keeps the connection",
            [
                say(get),
                Client::UntilAnswered,
                say(format!("{head}{chunk}{chunk}0\r\n\r\n")),
            ],
        )
        .times(2)
        .engine([
            Engine::Pause(200),
            reply(
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 9\r\n\r\nhello end",
            ),
        ]),
    ]
}

fn several() -> Vec<Case> {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n");
    let ten: String = (0..10).map(|number| get(&format!("/{number}"))).collect();
    vec![
        sends("two requests at once", get("/a") + &get("/b")).times(2),
        sends("ten requests at once", ten).times(10),
        sends(
            "two requests with bodies at once",
            post("Content-Length: 5", "hello") + &post("Content-Length: 2", "hi"),
        )
        .times(2),
        sends(
            "two requests with chunks at once",
            post("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")
                + &post("Transfer-Encoding: chunked", "2\r\nhi\r\n0\r\n\r\n"),
        )
        .times(2),
        sends(
            "a request after CRLF after a body",
            post("Content-Length: 5", "hello\r\n") + &get("/b"),
        )
        .times(2),
        sends(
            "a body that is longer than its length",
            post("Content-Length: 5", "helloX") + &get("/b"),
        )
        .times(2),
        sends("a request after one with close", {
            format!(
                "GET /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n{}",
                get("/smuggled")
            )
        }),
        sends("a good request and a bad one", get("/a") + "BAD\r\n\r\n").times(2),
        does(
            "a request in pieces of a byte",
            get("/a")
                .bytes()
                .flat_map(|byte| [say([byte]), Client::Pause(1)])
                .collect::<Vec<_>>(),
        ),
        pauses(
            "a body after a pause",
            post("Content-Length: 5", ""),
            "hello",
        ),
        pauses(
            "a body before and after a pause",
            post("Content-Length: 5", "he"),
            "llo",
        ),
        pauses(
            "chunks before and after a pause",
            post("Transfer-Encoding: chunked", "2\r\nhe\r\n"),
            "3\r\nllo\r\n0\r\n\r\n",
        ),
        pauses(
            "chunks, the last after a pause",
            post("Transfer-Encoding: chunked", "5\r\nhello\r\n"),
            "0\r\n\r\n",
        ),
    ]
}
