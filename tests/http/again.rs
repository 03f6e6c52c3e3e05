//! A request that an engine has not answered is sent again where it may be, to the same engine if that
//! only closed a connection, and the client is told what happened.

use crate::deployment::Deployment;
use crate::engine::{odd_engine, read_head, say};
use crate::stream::Stream;
use headcount::EngineState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Answers the first request on each connection, and closes it at the second.
fn closes_at_the_second(closed: &Arc<AtomicU32>) -> SocketAddr {
    let closed = Arc::clone(closed);
    odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            if !read_head(connection).is_empty() {
                closed.fetch_add(1, Relaxed);
            }
        }
    })
}

fn request(method: &str) -> String {
    format!("{method} /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
}

#[test]
fn one_that_may_be_repeated_goes_once_more_to_an_engine_that_closed_its_connection() {
    let closed = Arc::default();
    let engine = closes_at_the_second(&closed);
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for _ in 0..20 {
        for method in ["GET", "PUT", "DELETE"] {
            let mut stream = Stream::send(deployment.address, &request(method));
            assert_eq!(stream.status(), 200, "{method}: {}", stream.rest().0);
            deployment.settles();
        }
    }
    assert!(closed.load(Relaxed) > 0, "no connection was used again");
    assert_eq!(deployment.state(engine), Some(EngineState::Active));
}

#[test]
fn one_that_may_not_is_told_which_engine_broke_off_and_how() {
    let closed = Arc::default();
    let engine = closes_at_the_second(&closed);
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let mut stream = Stream::send(deployment.address, &request("POST"));
        statuses.push(stream.status());
        if stream.status() == 502 {
            let said = stream.rest().0;
            let engine = format!("http://{engine}");
            assert!(
                said.contains(&engine) && said.contains("connection"),
                "{said}"
            );
        }
        deployment.settles();
    }
    let with = |status| statuses.iter().filter(|s| **s == status).count();
    assert_eq!(with(200) + with(502), 20, "{statuses:?}");
    // The engine may have run each request whose connection it closed.
    assert_eq!(with(502), closed.load(Relaxed) as usize);
    assert!(with(502) > 0, "no connection was used again");
}

#[test]
fn an_engine_that_always_breaks_off_is_a_bad_gateway_and_not_the_want_of_one() {
    let engine = odd_engine(|connection| drop(read_head(connection)));
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for method in ["GET", "POST"] {
        let mut stream = Stream::send(deployment.address, &request(method));
        assert_eq!(stream.status(), 502, "{method}");
        let said = stream.rest().0;
        assert!(said.contains(&format!("http://{engine}")), "{said}");
    }
    deployment.settles();
}
