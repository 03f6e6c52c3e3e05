//! The server itself answers `/health`, `/live` and `/metrics`, whatever the method.

use crate::deployment::Deployment;
use crate::engine::engine_that_says;
use crate::stream::Stream;

#[test]
fn head_is_answered_like_get_without_the_body() {
    // Shows a request that goes to the engine by mistake.
    let engine = engine_that_says("HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n");
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for path in ["/health", "/live", "/metrics"] {
        let ask = |method: &str| {
            let line = format!("{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
            let mut stream = Stream::send(deployment.address, &line);
            assert_eq!(stream.status(), 200, "{method} {path}");
            let head = stream.head().to_lowercase();
            let lines = ["content-type", "content-length"].map(|name| {
                let line = head.lines().find(|line| line.starts_with(name));
                line.unwrap_or_default().to_owned()
            });
            (lines, stream.rest().0)
        };
        let ([kind, _], page) = ask("GET");
        let ([kind_for_head, length], nothing) = ask("HEAD");
        assert!(page.len() > 10 && nothing.is_empty());
        assert_eq!(kind, kind_for_head);
        // Of a page that changes between two requests, only that it has a length.
        let length: usize = length.split(": ").nth(1).unwrap().parse().unwrap();
        assert!(length > 10 && (path == "/metrics" || length == page.len()));
    }
}

#[test]
fn other_methods_are_told_which_there_are() {
    let engine = engine_that_says("HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n");
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for path in ["/health", "/live", "/metrics"] {
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n");
            let mut stream = Stream::send(deployment.address, &request);
            assert_eq!(stream.status(), 405, "{method} {path}");
            assert!(
                stream
                    .head()
                    .to_lowercase()
                    .contains("allow: get, head\r\n")
            );
        }
    }
}

#[test]
fn a_request_with_bad_framing_gets_no_page() {
    let engine = engine_that_says("HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n");
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for path in ["/health", "/live", "/metrics", "http://t/live"] {
        for (lines, status) in [
            ("", 400),
            ("Host: t\r\nHost: t\r\n", 400),
            ("Host: a/b\r\n", 400),
            ("Host: t\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
            (
                "Host: t\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
                400,
            ),
        ] {
            let next = "GET /live HTTP/1.1\r\nHost: t\r\n\r\n";
            let request = format!("GET {path} HTTP/1.1\r\n{lines}\r\n0\r\n\r\n{next}");
            let mut stream = Stream::send(deployment.address, &request);
            assert_eq!(stream.status(), status, "{path} {lines:?}");
            let rest = stream.rest().0;
            assert!(!rest.contains("HTTP/1.1 "), "nothing follows: {rest}");
        }
    }
    // HTTP/1.0 has no Host.
    let old = "GET /live HTTP/1.0\r\n\r\n";
    assert_eq!(Stream::send(deployment.address, old).status(), 200);
}
