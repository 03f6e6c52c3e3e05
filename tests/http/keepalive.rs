//! Connections whose other end is gone without a word, and connections that are not used.

use crate::deployment::Deployment;
use crate::engine::{MockEngine, addresses, odd_engine, read_head, read_request, say};
use crate::network::{apart, run};
use crate::stream::Stream;
use headcount_tests::{eventually, skipped};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Another host at the other end of a link: a thread with a network of its own.
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

    /// Runs a closure on that host, and returns its result.
    fn act<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let job = move || done.send(job()).unwrap();
        self.work.send(Box::new(job)).unwrap();
        result.recv().unwrap()
    }

    /// Cuts the link, as if the host had lost power.
    fn goes_dark(&self) {
        self.act(|| run("ip link set there down"));
    }
}

/// Runs a scene with another host, if the tool to set it up is installed.
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
fn an_engine_whose_host_is_gone_before_a_request_does_not_keep_it() {
    with_other_host(
        "keepalive::an_engine_whose_host_is_gone_before_a_request_does_not_keep_it",
        |host| {
            let address = format!("{}:0", OtherHost::ADDRESS);
            let engine = host.act(|| TcpListener::bind(address).unwrap());
            let address = engine.local_addr().unwrap();
            let deployment = Deployment::start(&[address], &OPTIONS);
            let mut first = Stream::post(deployment.address, "{}");
            let (connection, _) = engine.accept().unwrap();
            let mut connection = std::io::BufReader::new(connection);
            assert_ne!(read_request(&mut connection), "");
            say(
                &mut connection,
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            );
            assert_eq!(first.status(), 200);
            deployment.settles();
            // The next one goes out on the same connection, and gets lost.
            host.goes_dark();
            let mut second = Stream::post(deployment.address, "{}");
            // 503 if it was kept for too short a time for that.
            assert!(matches!(second.status(), 502 | 503));
            deployment.settles();
        },
    );
}

#[test]
fn a_client_whose_host_is_gone_does_not_keep_its_place() {
    with_other_host(
        "keepalive::a_client_whose_host_is_gone_does_not_keep_its_place",
        |host| {
            // The engine sends nothing, so no byte is under way to the client.
            let engine = odd_engine(|connection| while !read_head(connection).is_empty() {});
            let listen = format!("{}:0", OtherHost::THIS_ADDRESS);
            let deployment = Deployment::start_at(&listen, &[engine], &OPTIONS);
            let server: SocketAddr = deployment.address;
            let waiting: TcpStream = host.act(move || Stream::post(server, "{}").into_connection());
            eventually("the request's arrival", || deployment.total() == 1);
            host.goes_dark();
            deployment.settles();
            drop(waiting);
        },
    );
}

/// A request that leaves the connection open.
const GET: &str = "GET /live HTTP/1.1\r\nHost: test\r\n\r\n";

/// Returns how long a connection stays open on which this is sent, or `None` if it is still open after the
/// timeout of the client.
fn closed_after(deployment: &Deployment, sent: &str) -> Option<Duration> {
    let start = Instant::now();
    let mut stream = Stream::send(deployment.address, sent);
    let is_ended = stream.is_ended();
    is_ended.then(|| start.elapsed())
}

#[test]
fn a_connection_without_a_request_on_it_has_a_limit_of_its_own() {
    let engines = MockEngine::several(1, "0.002");
    // The limit within a request is the longer one here.
    let options = ["--keepalive-timeout", "0.3", "--client-idle-timeout", "30"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let idle = closed_after(&deployment, GET).expect("an end");
    assert!(
        idle >= Duration::from_millis(300) && idle < Duration::from_secs(20),
        "{idle:?}"
    );
    drop(deployment);

    // And here the shorter one.
    let options = ["--keepalive-timeout", "30", "--client-idle-timeout", "0.3"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let half = "GET /live HTTP/1.1\r\nHo";
    for sent in ["", half] {
        let silent = closed_after(&deployment, sent);
        assert!(
            silent.expect("an end") < Duration::from_secs(20),
            "{sent}: {silent:?}"
        );
    }
    // Longer than a request may pause: connections without one stay open, and serve the next.
    let mut stream = Stream::send(deployment.address, GET);
    assert_eq!(stream.status(), 200);
    stream.bytes("{\"status\":\"alive\"}".len());
    thread::sleep(Duration::from_millis(900));
    stream.again(GET);
    assert_eq!(stream.status(), 200);
    stream.bytes("{\"status\":\"alive\"}".len());
    // The limit within a request holds for the later ones, too.
    stream.more(half).unwrap();
    let start = Instant::now();
    assert!(stream.is_ended());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_long_answer_is_no_silence() {
    let engines = MockEngine::several(1, "0.1");
    let options = ["--keepalive-timeout", "0.2", "--client-idle-timeout", "0.2"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let mut whole = Stream::post(deployment.address, "{\"max_tokens\":10}");
    assert_eq!(whole.status(), 200);
    deployment.settles();
}
