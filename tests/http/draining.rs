//! An engine that an operator drains stays so, whatever workers and probes find.

use crate::deployment::Deployment;
use crate::engine::{odd_engine, read_head, say};
use crate::stream::Stream;
use headcount::{EngineState, Table};
use headcount_tests::eventually;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};

#[test]
fn an_engine_that_is_drained_while_a_worker_tries_to_reach_it_is_not_down() {
    // Its queue of connections is full, so another attempt gets no answer.
    let engine = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: changes the length of the queue of a socket of ours.
    assert_eq!(unsafe { libc::listen(engine.as_raw_fd(), 0) }, 0);
    let address = engine.local_addr().unwrap();
    let _queued = TcpStream::connect(address).unwrap();
    let deployment = Deployment::start(&[address], &["--connect-timeout", "2"]);
    let mut stream = Stream::post(deployment.address, "{}");
    eventually("the request's arrival", || deployment.total() == 1);
    let table = Table::open(deployment.table_path()).unwrap();
    table.drain(0).unwrap();
    assert_eq!(stream.status(), 503);
    assert_eq!(deployment.state(address), Some(EngineState::Draining));
    deployment.settles();
}

#[test]
fn an_engine_that_is_drained_while_it_is_probed_does_not_come_back() {
    // Answers a probe when it is told.
    let (asked, is_asked) = mpsc::channel::<()>();
    let (told, answers) = mpsc::channel::<()>();
    let ends = Mutex::new((asked, answers));
    let slow = odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            let (asked, answers) = &*ends.lock().unwrap();
            let _ = asked.send(());
            let _ = answers.recv();
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    // Answers each probe with an error, and counts the probes.
    let probed = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&probed);
    let ill = odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            counts.fetch_add(1, Relaxed);
            say(connection, "HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let options = ["--connect-timeout", "60", "--probe-every", "0.02"];
    let deployment = Deployment::start(&[slow, ill], &options);
    let table = Table::open(deployment.table_path()).unwrap();
    for engine in [0, 1] {
        table.down(engine).unwrap();
    }
    is_asked.recv().unwrap();
    table.drain(0).unwrap();
    told.send(()).unwrap();
    // A round probes each engine that is down once, and ends before the next round begins.
    let before = probed.load(Relaxed);
    eventually("two more rounds", || probed.load(Relaxed) >= before + 2);
    assert_eq!(deployment.state(slow), Some(EngineState::Draining));
    assert_eq!(deployment.state(ill), Some(EngineState::Down));
}
