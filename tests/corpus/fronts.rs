//! The fronts: nginx, HAProxy and `headcount-server`, each with a port for every lane.

use crate::engine::Lane;
use headcount::Table;
use headcount_tests::built;
use std::fs::{self, File};
use std::io;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The largest body that nginx and `headcount-server` take.
pub(crate) const MAX_BODY: usize = 100_000;
/// How much of a body `headcount-server` collects before it passes the body on.
pub(crate) const MAX_HELD: usize = 20_000;

/// A program through which the corpus is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Nginx,
    Haproxy,
    Ours,
}

/// A front, and its lanes.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) kind: Kind,
    pub(crate) lanes: Vec<Door>,
    running: Vec<Running>,
    _directory: TempDir,
}

/// One way through a front: where clients connect, and the engine behind it.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Lane,
    /// Whether all waits are short there.
    pub(crate) is_impatient: bool,
    /// Of `headcount-server` only.
    pub(crate) table: Option<Arc<Table>>,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Ours => "headcount-server",
        }
    }

    /// Returns where the program is, even if only root's path has it.
    fn program(self) -> Option<PathBuf> {
        let name = match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Ours => return Some(built("headcount-server", "headcount-server")),
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        places.find_map(|place| Some(place.join(name)).filter(|file| file.exists()))
    }
}

impl Front {
    /// Starts it, with an engine for each lane. `lanes` says of each whether it is impatient. `None` if the
    /// program is not installed.
    pub(crate) fn start(kind: Kind, lanes: &[bool]) -> Option<Self> {
        let program = kind.program()?;
        let mut front = Self {
            kind,
            lanes: Vec::new(),
            running: Vec::new(),
            _directory: headcount_tests::directory(),
        };
        let directory = front._directory.path().to_owned();
        front.lanes.extend(lanes.iter().map(|is_impatient| Door {
            address: free_address(),
            engine: Lane::start(),
            is_impatient: *is_impatient,
            table: None,
        }));
        match kind {
            Kind::Ours => {
                for number in 0..lanes.len() {
                    front.start_ours(&program, &directory, number);
                }
            }
            Kind::Nginx => {
                let file = directory.join("nginx.conf");
                fs::write(&file, nginx(&front.lanes)).unwrap();
                let mut command = Command::new(program);
                command.arg("-p").arg(&directory).arg("-c").arg(file);
                front.start_in_front(command, &directory);
            }
            Kind::Haproxy => {
                let file = directory.join("haproxy.cfg");
                fs::write(&file, haproxy(&front.lanes)).unwrap();
                let mut command = Command::new(program);
                command.arg("-db").arg("-f").arg(file);
                front.start_in_front(command, &directory);
            }
        }
        Some(front)
    }

    fn start_ours(&mut self, program: &Path, directory: &Path, number: usize) {
        let door = &mut self.lanes[number];
        let table = directory.join(format!("table-{number}"));
        let log = File::create(directory.join(format!("log-{number}"))).unwrap();
        let mut command = Command::new(program);
        command.args(["--workers", "1", "--drain-timeout", "1"]);
        command.args(["--listen", &door.address.to_string()]);
        command.args(["--engine", &format!("http://{}", door.engine.address)]);
        command.args(["--max-body", &MAX_BODY.to_string()]);
        command.args(["--max-held", &MAX_HELD.to_string()]);
        if door.is_impatient {
            for name in ["client-idle", "first-byte", "engine-idle"] {
                command.args([&format!("--{name}-timeout"), "1"]);
            }
        }
        command.arg("--table").arg(&table);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        self.running.push(Running(child));
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line:?}");
        // Opened for reading only, so the test does not reap.
        door.table = Some(Arc::new(Table::open_read_only(&table).unwrap()));
    }

    fn start_in_front(&mut self, mut command: Command, directory: &Path) {
        let log = directory.join("log");
        let output = File::create(&log).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
        // Unlike `headcount-server`, it does not notice when this process is killed.
        // SAFETY: changes only what happens to this process when its parent's thread ends.
        let follow = || match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        // SAFETY: what is called between fork and exec allocates nothing and takes no lock.
        unsafe { command.pre_exec(follow) };
        self.running.push(Running(command.spawn().unwrap()));
        for door in &self.lanes {
            let start = Instant::now();
            while TcpStream::connect(door.address).is_err() {
                let late = start.elapsed() > Duration::from_secs(60);
                let log = || fs::read_to_string(&log).unwrap_or_default();
                assert!(!late, "{} does not listen: {}", self.kind.name(), log());
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// A process, ended when dropped.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: changes nothing in this process; the process is a child that was not waited for yet.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && start.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port at a loopback address of its own, which no other process takes before the front does.
fn free_address() -> SocketAddr {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let number = NUMBER.fetch_add(1, Relaxed); // Relaxed: it is only to be another one
    let address = Ipv4Addr::new(127, high | 0x40, low, number);
    let socket = TcpListener::bind((address, 0)).unwrap();
    socket.local_addr().unwrap()
}

/// As the documentation of nginx has it for engines that stream, and else by its defaults. One process, so
/// that no other user has to be able to read the directory.
fn nginx(lanes: &[Door]) -> String {
    let mut servers = String::new();
    for (number, door) in lanes.iter().enumerate() {
        let (listen, engine) = (door.address, door.engine.address);
        let waits = if door.is_impatient {
            "client_header_timeout 1s; client_body_timeout 1s; send_timeout 1s; proxy_read_timeout 1s; \
         lingering_timeout 1s;"
        } else {
            ""
        };
        servers += &format!(
            "upstream engines{number} {{ zone engines{number} 64k; least_conn; server {engine}; keepalive 64; }}
             server {{
                 listen {listen};
                 client_max_body_size {MAX_BODY};
                 {waits}
                 location / {{
                     proxy_pass http://engines{number};
                     proxy_http_version 1.1;
                     proxy_set_header Connection \"\";
                     proxy_buffering off;
                 }}
             }}\n"
        );
    }
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log;
         events {{ worker_connections 1024; }}
         http {{
             access_log off;
             client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
             uwsgi_temp_path uwsgi; scgi_temp_path scgi;
             {servers}
         }}\n"
    )
}

/// As the documentation of HAProxy has it, and else by its defaults.
fn haproxy(lanes: &[Door]) -> String {
    let mut text = "global\n    maxconn 1000\n    nbthread 1\n\
                    defaults\n    mode http\n    balance leastconn\n    timeout connect 5s\n"
        .to_owned();
    for (number, door) in lanes.iter().enumerate() {
        let (listen, engine) = (door.address, door.engine.address);
        let wait = if door.is_impatient { "1s" } else { "60s" };
        text += &format!(
            "frontend f{number}\n    bind {listen}\n    timeout client {wait}\n    \
             timeout http-request {wait}\n    timeout http-keep-alive 60s\n    default_backend b{number}\n\
             backend b{number}\n    timeout server {wait}\n    server engine {engine}\n"
        );
    }
    text
}
