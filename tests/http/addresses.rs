//! How addresses of engines are written, and which are refused.

use crate::deployment::{Deployment, agent, complete, program};
use crate::engine::{MockEngine, read_head, say};
use crate::network::apart;
use headcount_tests::skipped;
use std::io::BufReader;
use std::net::{Ipv6Addr, SocketAddrV6, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Starts the program with engines that it refuses. Returns its message.
fn refused(engines: &[&str]) -> String {
    let mut command = Command::new(program());
    for engine in engines {
        command.args(["--engine", engine]);
    }
    command.args(["--listen", "127.0.0.1:0"]);
    let mut program = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while program.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = program.kill();
    let ended = program.wait_with_output().unwrap();
    let code = ended.status.code();
    // Status 2 stands for a mistake on the command line.
    assert!(matches!(code, Some(1 | 2)), "{engines:?}: {ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn two_ways_to_write_an_address_are_one_engine() {
    for same in [
        ["http://localhost:9001", "http://LOCALHOST:9001"],
        ["http://localhost:9001", "http://localhost:9001/"],
        ["http://localhost", "HTTP://localhost:80"],
        ["http://a.example.:9001", "http://A.example:9001"],
        ["http://[::1]:9001", "http://[0:0::0:1]:9001"],
        ["http://127.0.0.1:9001", "http://[::ffff:127.0.0.1]:9001"],
        ["http://[fe80::1%25lo]:9001", "http://[FE80::1%lo]:9001"],
    ] {
        let said = refused(&same);
        assert!(said.contains("twice"), "{same:?}: {said}");
    }
}

#[test]
fn the_table_has_the_one_form() {
    let engine = MockEngine::start_at("127.0.0.1:0", "0.002");
    let port = engine.address.port();
    let list = format!("HTTP://LocalHost:{port}/ weight=2\n");
    let deployment = Deployment::start_by_file(&list, &[]);
    let engines = deployment.table.view().engines;
    assert_eq!(engines[0].name, format!("http://localhost:{port}"));
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
    deployment.settles();
}

#[test]
fn an_address_that_could_never_be_reached_is_refused_at_the_start() {
    for (address, why) in [
        ("http://[fe80::1]:9001", "on which link"),
        (
            "http://[fe80::1%25nosuch0]:9001",
            "no network interface \"nosuch0\"",
        ),
        ("http://0.0.0.0:9001", "at which no client reaches it"),
        ("http://127.1:9001", "four decimal numbers"),
        ("https://localhost:9001", "TLS"),
        ("http://user:secret@localhost:9001", "user name"),
        ("http://localhost:9001/v1", "has a path"),
    ] {
        let said = refused(&[address]);
        assert!(said.contains(why), "{address}: {said}");
    }
}

#[test]
fn a_link_local_address_is_reached_over_its_interface() {
    let test = "addresses::a_link_local_address_is_reached_over_its_interface";
    if Command::new("ip").arg("-V").output().is_err() {
        return skipped(test, "there is no ip(8) here");
    }
    apart(test, || {
        let add = ["-6", "addr", "add", "fe80::77/64", "dev", "lo", "nodad"];
        let added = Command::new("ip").args(add).output().unwrap();
        if !added.status.success() {
            return skipped(test, "there is no IPv6 here");
        }
        // The loopback device is the first one.
        let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x77);
        let engine = TcpListener::bind(SocketAddrV6::new(ip, 0, 0, 1)).unwrap();
        let port = engine.local_addr().unwrap().port();
        let heads = thread::spawn(move || {
            let mut connection = BufReader::new(engine.accept().unwrap().0);
            let head = read_head(&mut connection);
            say(
                &mut connection,
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            );
            head
        });
        let list = format!("http://[fe80::77%25lo]:{port}");
        let deployment = Deployment::start_by_file(&list, &["--workers=1"]);
        let answer = agent()
            .get(deployment.url("/v1/completions"))
            .call()
            .unwrap();
        assert_eq!(answer.status(), 200);
        // The engine does not get the network interface.
        let head = heads.join().unwrap().to_lowercase();
        assert!(
            head.contains(&format!("host: [fe80::77]:{port}\r\n")),
            "{head}"
        );
    });
}
