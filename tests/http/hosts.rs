//! Which host a request is for, and how the server changes its head.

use crate::deployment::Deployment;
use crate::engine::{engine_that_says, mirror};
use crate::stream::Stream;

#[test]
fn a_request_names_one_host() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for (version, hosts, status) in [
        ("1.1", "Host: t\r\n", 200),
        ("1.1", "Host: t:80\r\n", 200),
        ("1.1", "Host: [::1]:80\r\n", 200),
        ("1.1", "Host:\r\n", 200),
        ("1.0", "", 200),
        ("1.1", "", 400),
        ("1.1", "Host: a\r\nHost: b\r\n", 400),
        ("1.1", "Host: a\r\nHost: a\r\n", 400),
        ("1.0", "Host: a\r\nHost: a\r\n", 400),
        ("1.1", "Host: a b\r\n", 400),
        ("1.1", "Host: a/b\r\n", 400),
        ("1.1", "Host: user@a\r\n", 400),
        ("1.1", "Host: a, b\r\n", 400),
    ] {
        let request = format!("GET / HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), status, "{version} {hosts:?}");
        if status == 400 {
            assert!(
                stream
                    .head()
                    .to_lowercase()
                    .contains("connection: close\r\n")
            );
            assert!(stream.rest().0.contains("invalid_host"));
        }
    }
    deployment.settles();
}

#[test]
fn the_host_of_the_target_is_right() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    let request = "GET http://target.example:8/a HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n";
    let got = Stream::send(deployment.address, request)
        .rest()
        .0
        .to_lowercase();
    assert!(got.starts_with("get /a http/1.1\r\n"), "{got}");
    assert!(
        got.contains("x-forwarded-host: target.example:8\r\n"),
        "{got}"
    );
    assert!(!got.contains("other.example"), "{got}");
}

#[test]
fn targets_arrive_as_they_were_sent() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for target in [
        "/a%2Fb/%e2%82%ac/%20?q=%26&q=a+b&empty=&flag",
        "//double//slash/../up/./here",
        "/?",
        "/a;b=c,d:e@f!$&'()*+",
        "/v1/models?x=1?y=2",
        "*",
    ] {
        let methods = if target == "*" {
            &["OPTIONS"][..]
        } else {
            &["GET", "OPTIONS"]
        };
        for method in methods {
            let request =
                format!("{method} {target} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
            let got = Stream::send(deployment.address, &request).rest().0;
            let line = format!("{method} {target} HTTP/1.1\r\n");
            assert!(got.starts_with(&line), "{line:?}: {got}");
        }
    }
}

#[test]
fn a_target_that_is_no_path_is_refused_and_not_taken_for_another() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for line in [
        "GET t:80",
        "GET a",
        "GET ?a",
        "GET *",
        "POST t:80",
        "OPTIONS a",
    ] {
        let request = format!("{line} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), 400, "{line}");
    }
    let request = "GET http://t?a=b HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    let got = Stream::send(deployment.address, request).rest().0;
    assert!(got.starts_with("GET /?a=b HTTP/1.1\r\n"), "{got}");
}

#[test]
fn offers_of_other_protocols_are_ignored_where_they_may_be() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for (lines, status) in [
        ("Upgrade: websocket\r\nConnection: close", 200),
        ("Upgrade: x/1\r\nConnection: close, upgrade", 200),
        (
            "Upgrade: h2c, x\r\nConnection: close, Upgrade, HTTP2-Settings",
            200,
        ),
        ("Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade", 501),
        ("Upgrade: h2c, websocket\r\nConnection: Upgrade", 501),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: t\r\n{lines}\r\n\r\n");
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), status, "{lines}");
        if status == 200 {
            let got = stream.rest().0.to_lowercase();
            assert!(!got.contains("upgrade"), "{got}");
        }
    }
    deployment.settles();
}

#[test]
fn lines_of_one_name_stay_lines_of_their_own() {
    let cookies =
        "Set-Cookie: a=1; Path=/\r\nX-Other: 1\r\nSet-Cookie: b=2, c\r\nset-cookie: d=\r\n";
    let answer = format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: 0\r\n\r\n");
    let deployment = Deployment::start(&[engine_that_says(answer)], &["--workers=1"]);
    let mut stream = Stream::send(deployment.address, "GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    let cookies = stream
        .head()
        .lines()
        .filter_map(|l| l.strip_prefix("set-cookie: "));
    assert_eq!(cookies.collect::<Vec<_>>(), ["a=1; Path=/", "b=2, c", "d="]);
    // Requests likewise.
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    let request =
        "GET / HTTP/1.1\r\nHost: t\r\nX-Many: 1\r\nX-Many: 2, 3\r\nConnection: close\r\n\r\n";
    let got = Stream::send(deployment.address, request).rest().0;
    assert!(got.contains("x-many: 1\r\nx-many: 2, 3\r\n"), "{got}");
}
