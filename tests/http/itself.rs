//! A socket that looks for a port of its own host on which no process listens can be given that very
//! port, and is connected to itself then. Here each one is: in a network of the test's own.

use crate::deployment::Deployment;
use crate::network::apart;
use crate::stream::Stream;
use headcount::EngineState;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

#[test]
fn an_engine_that_is_gone_is_down_though_its_port_answers_by_itself() {
    apart(
        "itself::an_engine_that_is_gone_is_down_though_its_port_answers_by_itself",
        gone_engine,
    );
}

fn gone_engine() {
    let engine = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = engine.local_addr().unwrap();
    drop(engine);
    let deployment = Deployment::start(&[address], &["--workers=1"]);
    // The only port that is given out from now on.
    let range = format!("{0} {0}", address.port());
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", range).unwrap();
    assert!(connects_to_itself(address), "this is what it is about");
    let mut stream = Stream::post(deployment.address, "{}");
    assert_eq!(stream.status(), 503, "{}", stream.head());
    assert!(stream.rest().0.contains("no_engine"));
    assert_eq!(deployment.state(address), Some(EngineState::Down));
    deployment.settles();
}

fn connects_to_itself(address: SocketAddr) -> bool {
    let stream = TcpStream::connect(address).unwrap();
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option is read from the value given, of the size given. It closes the connection at
    // once, so that the next one can have the same addresses.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as u32,
        )
    };
    assert_eq!(set, 0);
    stream.local_addr().unwrap() == stream.peer_addr().unwrap()
}
