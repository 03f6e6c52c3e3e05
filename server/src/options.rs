//! The command line. Workers and mock engines are started with that of their parent.

use crate::engine::entry::{EngineEntry, MOST_IN_FLIGHT, MOST_TOKENS};
use crate::route::standing::MOST_CLASS;
use clap::{Parser, ValueEnum, value_parser};
use headcount::Policy;
use hyper::header::HeaderName;
use hyper::http::uri::PathAndQuery;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

/// An HTTP front end for LLM engines: several processes serve one port, and route by one table.
///
/// SIGTERM: accept nothing new, finish the requests in flight, and end. SIGHUP: read --engines-file and --tenants
/// again.
#[derive(Clone, Debug, Parser)]
#[command(name = "headcount-server", version)]
pub(crate) struct Options {
    /// The address to listen on; port 0 takes any free port, which is then printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8000", value_parser = socket_address)]
    pub(crate) listen: SocketAddr,

    /// How many worker processes to run, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,

    /// An engine, as "http://HOST:PORT [weight=W] [max_in_flight=N] [max_tokens=N]"; give one --engine
    /// for each [default: the program starts four mock engines]
    #[arg(long = "engine", value_name = "ENGINE")]
    pub(crate) engines: Vec<EngineEntry>,

    /// A file with one engine a line, in the same form; empty lines and lines that begin with # are skipped
    #[arg(long, value_name = "FILE", conflicts_with = "engines")]
    pub(crate) engines_file: Option<PathBuf>,

    /// Where the table lies, on a tmpfs such as /dev/shm; it remains there for the next deployment
    /// [default: memory that ends with the processes]
    #[arg(long, value_name = "PATH")]
    pub(crate) table: Option<PathBuf>,

    /// The most requests in flight on an engine that has no max_in_flight of its own [default: no cap]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MOST_IN_FLIGHT.into()))]
    pub(crate) max_in_flight: Option<u32>,

    /// The most tokens in flight on an engine that has no max_tokens of its own [default: no cap]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MOST_TOKENS.into()))]
    pub(crate) max_tokens: Option<u32>,

    /// The most requests in flight on all engines together [default: no cap]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MOST_TOKENS.into()))]
    pub(crate) max_in_flight_total: Option<u32>,

    /// The most requests that wait for room at an engine, over all workers together [default: none waits; without
    /// room a request gets 503 at once]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MOST_WAITING.into()))]
    pub(crate) queue: Option<u32>,

    /// The most requests of a class that wait, for a class from 0 to 3; give it once for each class [default: as
    /// many as --queue allows for all]
    #[arg(long, value_name = "CLASS=N", value_parser = class_bound, requires = "queue")]
    pub(crate) queue_of_class: Vec<ClassBound>,

    /// How long a request may wait, in seconds; then it gets 503
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) queue_timeout: Duration,

    /// The header field with a request's class: 0 is served first, 3 last, and a request without the field is of
    /// class 0 [default: no field]
    #[arg(long, value_name = "NAME", value_parser = header_name, requires = "queue")]
    pub(crate) class_header: Option<HeaderName>,

    /// The header field that names the tenant of a request; while requests wait, tenants are served equally
    /// [default: no field]
    #[arg(long, value_name = "NAME", value_parser = header_name, requires = "queue", conflicts_with = "tenants")]
    pub(crate) tenant_header: Option<HeaderName>,

    /// A file with one tenant a line, "KEY NAME [share=N] [class=N]", by the API key of the request
    /// (Authorization: Bearer KEY); KEY is the key itself, sha256: and the hash of the key in hexadecimal, or *
    /// for all other keys. Without a line for *, they have no tenant and are of class 0. No request is refused
    /// for its key
    #[arg(long, value_name = "FILE", requires = "queue")]
    pub(crate) tenants: Option<PathBuf>,

    /// How to compute the load of an engine
    #[arg(long, value_name = "NAME", default_value = "in-flight")]
    pub(crate) policy: Routing,

    /// Let the tokens of a request grow with its answer while that is streamed: each event is a token, unless the
    /// engine tells how many there are
    #[arg(long)]
    pub(crate) count_output: bool,

    /// Send prompts with the same beginning to the same engine, unless its load exceeds that of the least
    /// loaded engine by more than this [default: off]
    #[arg(long, value_name = "SLACK", value_parser = slack)]
    pub(crate) affinity: Option<f64>,

    /// How many bytes of a prompt count as its beginning
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    pub(crate) affinity_bytes: usize,

    /// Send a POST again to another engine if the first one breaks off before it answers anything; methods
    /// that may be repeated (GET, PUT, DELETE, ...) always are
    #[arg(long)]
    pub(crate) repeat_posts: bool,

    /// The largest body of a request, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) max_body: u64,

    /// How many bytes of a body to collect before an engine is chosen; the rest of a longer body is passed on
    /// as it comes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) max_held: u64,

    /// How long an engine may take to accept a connection, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) connect_timeout: Duration,

    /// How long to use the addresses of an engine's name before it is looked up again, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) resolve_every: Duration,

    /// How long an engine's host may be silent before TCP asks it for a sign of life, in seconds; after twice
    /// that time the connection is closed. 0: never
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = keepalive)]
    pub(crate) engine_keepalive: Duration,

    /// How long an engine may take to begin its answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) first_byte_timeout: Duration,

    /// How long an engine may pause within its answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) engine_idle_timeout: Duration,

    /// How long a client may pause within its request, keep an engine waiting in all, or leave its answer
    /// unread, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) client_idle_timeout: Duration,

    /// How long a client may keep a connection without a request on it, in seconds; longer than a balancer in
    /// front keeps it, so that the balancer never uses a connection that is just being closed
    #[arg(long, value_name = "SECONDS", default_value = "75", value_parser = seconds)]
    pub(crate) keepalive_timeout: Duration,

    /// The same as --engine-keepalive, for clients
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = keepalive)]
    pub(crate) client_keepalive: Duration,

    /// How long to go on serving after SIGTERM while /health says 503 already, in seconds; as long as a
    /// balancer in front takes to notice
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds_or_none)]
    pub(crate) shutdown_delay: Duration,

    /// How long requests in flight may go on once no new ones are accepted, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) drain_timeout: Duration,

    /// The path that a probe asks of an engine that is down; a 2xx brings the engine up again
    #[arg(long, value_name = "PATH", default_value = "/health", value_parser = path)]
    pub(crate) probe_path: String,

    /// How often to probe, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    pub(crate) probe_every: Duration,

    /// Write a line of JSON to standard output for each request that has ended; the lines of the start then
    /// go to standard error
    #[arg(long)]
    pub(crate) access_log: bool,

    /// Be a mock engine at this address, and nothing else
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    pub(crate) mock_engine: Option<SocketAddr>,

    /// How long a mock engine takes to decode a token for an empty batch, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.01", value_parser = seconds)]
    pub(crate) mock_step: Duration,

    /// How much longer a mock engine takes for each request in the batch, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.0001", value_parser = seconds_or_none)]
    pub(crate) mock_step_per_request: Duration,

    /// The listening socket of a worker
    #[arg(long, hide = true)]
    pub(crate) listener: Option<RawFd>,

    /// The memory of the counters of all workers
    #[arg(long, hide = true)]
    pub(crate) counters: Option<RawFd>,

    /// Which of the workers this is
    #[arg(long, hide = true)]
    pub(crate) number: Option<usize>,

    /// Standard input is a pipe from the parent, which closes when the parent ends
    #[arg(long, hide = true)]
    pub(crate) lifeline: bool,
}

/// The most requests that wait in a table.
const MOST_WAITING: u32 = headcount::MAX_IN_FLIGHT;

/// A bound of its own for the requests of a class that wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassBound {
    pub(crate) class: u8,
    pub(crate) requests: u32,
}

/// The policies that need only the counts of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Routing {
    /// By requests in flight
    InFlight,
    /// By tokens in flight, estimated from the prompt
    Tokens,
    /// Each engine in turn
    RoundRobin,
    /// The less loaded one of two engines picked at random
    PowerOfTwo,
}

/// What a worker inherits from its parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inherited {
    pub(crate) listener: RawFd,
    pub(crate) counters: RawFd,
    pub(crate) number: usize,
}

impl Options {
    /// Returns what this process has inherited, if it is a worker.
    pub(crate) fn inherited(&self) -> Option<Inherited> {
        Some(Inherited {
            listener: self.listener?,
            counters: self.counters?,
            number: self.number?,
        })
    }

    pub(crate) fn policy(&self) -> Policy {
        match self.policy {
            Routing::InFlight => Policy::in_flight(),
            Routing::Tokens => Policy::tokens(),
            Routing::RoundRobin => Policy::round_robin(),
            Routing::PowerOfTwo => Policy::power_of_two(),
        }
    }

    /// Whether tokens are counted, for which a worker has to read the body of each request.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.policy == Routing::Tokens || self.max_tokens.is_some() || self.count_output
    }
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let is_host = text.parse::<IpAddr>().is_ok();
        let port = text.rsplit(':').next().filter(|_| !is_host);
        let port: u16 = port.and_then(|port| port.parse().ok()).unwrap_or(8000);
        format!(
            "expected an IP address and a port: 127.0.0.1:{port} for clients on this host, 0.0.0.0:{port} or [::]:{port} for all"
        )
    })
}

fn class_bound(text: &str) -> Result<ClassBound, String> {
    let bound = text.split_once('=').and_then(|(class, requests)| {
        let class = class.parse().ok().filter(|class| *class <= MOST_CLASS)?;
        let in_range = |requests: &u32| (1..=MOST_WAITING).contains(requests);
        let requests = requests.parse().ok().filter(in_range)?;
        Some(ClassBound { class, requests })
    });
    bound.ok_or_else(|| {
        format!("expected CLASS=N, with a class from 0 to {MOST_CLASS} and a number from 1 to {MOST_WAITING}")
    })
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    let name = text.parse();
    name.map_err(|_| "expected the name of a header field, such as x-class".to_owned())
}

/// Reads a path, with a query or without (RFC 3986, sections 3.3 and 3.4).
fn path(text: &str) -> Result<String, String> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    let mut parts = text.split('%');
    let has_plain = |part: &str| part.bytes().all(is_plain);
    let is_encoded = parts.next().is_some_and(has_plain)
        && parts.all(|part| {
            let digits = part.as_bytes().first_chunk::<2>();
            digits.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)) && has_plain(part)
        });
    let is_path = text.starts_with('/') && is_encoded;
    if is_path && text.parse::<PathAndQuery>().is_ok() {
        Ok(text.to_owned())
    } else {
        Err(
            "expected a path that begins with /, encoded as in a URL: /%C3%A4 for /\u{e4}, /%25 for /%"
                .to_owned(),
        )
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err("expected seconds, 0.001 to 86400".to_owned()),
    }
}

fn seconds_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, 0 to 3600".to_owned()),
    }
}

/// Reads whole seconds: the kernel has no fractions here.
fn keepalive(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 0..=32_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected whole seconds, 1 to 32000, or 0 for never".to_owned()),
    }
}

fn slack(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(slack) if (0.0..=1e9).contains(&slack) => Ok(slack),
        _ => Err("expected a difference in load, 0 to 1000000000".to_owned()),
    }
}
