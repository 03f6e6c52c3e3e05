//! A socket that looks for a port of its own host on which no process listens can be given that very
//! port, and is connected to itself then. Here each one is: in a network of the test's own.

use crate::deployment::Deployment;
use crate::stream::Stream;
use headcount::EngineState;
use headcount_tests::skipped;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::{env, fs, io};

/// Says to this program, started anew, that it is in that network.
const INSIDE: &str = "HEADCOUNT_TEST_NETWORK";

#[test]
fn an_engine_that_is_gone_is_down_though_its_port_answers_by_itself() {
    if env::var_os(INSIDE).is_some() {
        return gone_engine();
    }
    let name = "an_engine_that_is_gone_is_down_though_its_port_answers_by_itself";
    let unshare = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", program]);
        command
    };
    if !unshare("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        return skipped(name, "no network namespace can be made here");
    }
    let program = env::current_exe().unwrap();
    let ran = unshare(program.to_str().unwrap())
        .args(["--exact", &format!("itself::{name}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

fn gone_engine() {
    set_up_loopback().unwrap();
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

/// A new network has a loopback device that is down.
fn set_up_loopback() -> io::Result<()> {
    let socket = TcpListener::bind("0.0.0.0:0")?;
    // SAFETY: a name and flags of zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: reads the request only.
    match unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
