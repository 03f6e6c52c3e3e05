//! Connections whose other end is gone without a word, and connections that are not used.

use crate::deployment::Deployment;
use crate::engine::{odd_engine, read_head};
use crate::network::{apart, run};
use crate::stream::Stream;
use headcount_tests::{eventually, skipped};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

/// Another host, at the end of a link: a thread with a network of its own.
struct OtherHost {
    work: mpsc::Sender<Box<dyn FnOnce() + Send>>,
}

impl OtherHost {
    const ADDRESS: &str = "10.77.0.2";
    const THIS_ADDRESS: &str = "10.77.0.1";

    fn start() -> Self {
        let (work, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (ready, is_ready) = mpsc::channel();
        thread::spawn(move || {
            // SAFETY: changes the network of this thread only.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            // SAFETY: always allowed.
            ready.send(unsafe { libc::gettid() }).unwrap();
            for job in jobs {
                job();
            }
        });
        let thread = is_ready.recv().unwrap();
        run(&format!(
            "ip link add here type veth peer name there netns {thread}"
        ));
        run(&format!("ip addr add {}/24 dev here", Self::THIS_ADDRESS));
        run("ip link set here up");
        let host = Self { work };
        host.act(|| {
            run(&format!("ip addr add {}/24 dev there", Self::ADDRESS));
            run("ip link set there up");
        });
        host
    }

    /// Does something there, and returns what comes of it.
    fn act<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let job = move || done.send(job()).unwrap();
        self.work.send(Box::new(job)).unwrap();
        result.recv().unwrap()
    }

    /// It is as if its host had lost power: what is sent to it gets lost.
    fn goes_dark(&self) {
        self.act(|| run("ip link set there down"));
    }
}

/// Runs a scene with another host, where there is the tool to set it up.
fn with_other_host(test: &str, scene: impl FnOnce(&OtherHost)) {
    if Command::new("ip").arg("-V").output().is_err() {
        return skipped(test, "there is no ip(8) here");
    }
    apart(test, || scene(&OtherHost::start()));
}

const OPTIONS: [&str; 7] = [
    "--workers=1",
    "--engine-keepalive",
    "1",
    "--client-keepalive",
    "1",
    "--client-idle-timeout",
    "2",
];

#[test]
fn an_engine_whose_host_is_gone_does_not_keep_a_request() {
    with_other_host(
        "keepalive::an_engine_whose_host_is_gone_does_not_keep_a_request",
        |host| {
            let address = format!("{}:0", OtherHost::ADDRESS);
            let engine = host.act(|| TcpListener::bind(address).unwrap());
            let address = engine.local_addr().unwrap();
            let deployment = Deployment::start(&[address], &OPTIONS);
            // Its answer is in one piece, and takes hours.
            let mut waiting = Stream::post(deployment.address, "{}");
            let (connection, _) = engine.accept().unwrap();
            let mut connection = std::io::BufReader::new(connection);
            assert_ne!(read_head(&mut connection), "");
            assert_eq!(deployment.total(), 1);
            host.goes_dark();
            deployment.settles();
            assert_eq!(waiting.status(), 502);
        },
    );
}

#[test]
fn a_client_whose_host_is_gone_does_not_keep_its_place() {
    with_other_host(
        "keepalive::a_client_whose_host_is_gone_does_not_keep_its_place",
        |host| {
            // It says nothing, so that nothing is to be sent to the client either.
            let engine = odd_engine(|connection| while !read_head(connection).is_empty() {});
            let listen = format!("{}:0", OtherHost::THIS_ADDRESS);
            let deployment = Deployment::start_at(&listen, &[engine], &OPTIONS);
            let server: SocketAddr = deployment.address;
            let waiting: TcpStream = host.act(move || Stream::post(server, "{}").into_connection());
            eventually("the request's being there", || deployment.total() == 1);
            host.goes_dark();
            deployment.settles();
            drop(waiting);
        },
    );
}
