//! How to build an API server on headcount: several processes, one port, one table of exact counts.
//!
//! ```console
//! $ cargo run --release --example api_server                # starts four mock engines of its own
//! $ curl -N http://127.0.0.1:8000/v1/completions -d '{"prompt": "hello", "max_tokens": 20}'
//! ```
//!
//! ```text
//!            ┌─▶ worker ─┐               the parent opens the socket and the table, and passes both on;
//!  clients ──┼─▶ worker ─┼─▶ engines     each worker accepts, routes by the table, and forwards;
//!            └─▶ worker ─┘               the reaper in the parent frees what a killed worker had in flight
//! ```
//!
//! It leaves out what real traffic needs: timeouts, kept connections, probes, hop-by-hop headers, strict framing,
//! metrics, an access log, an end for stopped workers. `headcount-server` (in `server/`) has all of that.

use bytes::Bytes;
use clap::Parser;
use headcount::{Engine, Frontend, Permit, Table};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, channel::Channel};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::signal::{ctrl_c, unix::SignalKind, unix::signal};
use tokio::time::{sleep, timeout};

/// An API server of several processes.
#[derive(Clone, Parser)]
struct Options {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: String,
    /// How many worker processes to start
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// An engine, as http://HOST:PORT; repeat it for each [default: four mock engines]
    #[arg(long = "engine")]
    engines: Vec<String>,
    /// The most requests in flight on each engine
    #[arg(long, default_value_t = 64)]
    max_in_flight: u32,
    /// Where the table lies, on /dev/shm for example [default: memory that ends with the processes]
    #[arg(long)]
    table: Option<PathBuf>,
    /// Be a worker of the parent with this pid
    #[arg(long, hide = true)]
    worker: Option<u32>,
}

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

// One thread a process, here. A frontend works with any number of threads.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(parent) = options.worker {
        return work(parent).await;
    }
    supervise(options).await
}

/// The parent opens what the workers share, starts them, and starts another one when one ends.
async fn supervise(mut options: Options) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    if options.engines.is_empty() {
        for _ in 0..4 {
            options.engines.push(start_mock_engine().await?);
        }
    }
    // One listening socket for all workers. Connections wait in its queue, so those that a killed worker has not
    // accepted go to the others. (With SO_REUSEPORT each worker has a queue, which dies with it.)
    let socket = std::net::TcpListener::bind(&options.listen)?;
    socket.set_nonblocking(true)?;
    // The table has a row for each engine. An engine's name is its address, so workers need no list of engines.
    let mut table = Table::options();
    for name in &options.engines {
        table = table.engine(Engine::named(name).max_in_flight(options.max_in_flight));
    }
    let table = match &options.table {
        Some(path) => table.open_or_create(path)?,
        None => table.memfd()?,
    };
    // Frees what a killed worker had in flight, within this time.
    let _reaper = table.reap_every(Duration::from_millis(100))?;

    let workers = (0..options.workers).map(|_| start_worker(&table, &socket));
    let mut workers = workers.collect::<Result<Vec<_>>>()?;
    println!("listening on http://{}", socket.local_addr()?);
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = ctrl_c() => break,
            () = sleep(Duration::from_millis(100)) => {}
        }
        for worker in &mut workers {
            if let Some(status) = worker.try_wait()? {
                eprintln!("a worker has ended ({status}); starting another");
                *worker = start_worker(&table, &socket)?;
            }
        }
    }
    // Workers close it too, so new connections are refused; and they finish what they have in flight.
    drop(socket);
    for pid in workers.iter().filter_map(Child::id) {
        let pid = Pid::from_raw(pid.cast_signed()).expect("not 0");
        let _ = kill_process(pid, Signal::TERM); // fails if it has ended just now
    }
    for worker in &mut workers {
        worker.wait().await?;
    }
    Ok(())
}

fn start_worker(table: &Table, socket: &std::net::TcpListener) -> Result<Child> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.arg(format!("--worker={}", std::process::id()));
    command.process_group(0); // Ctrl-C is for the parent alone
    command.stdin(Stdio::from(OwnedFd::from(socket.try_clone()?)));
    table.pass_to(&mut command);
    Ok(Command::from(command).spawn()?)
}

/// A worker serves clients until SIGTERM.
async fn work(parent: u32) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    // The death of the parent ends a worker as SIGTERM does, also if the parent has died by now.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if parent_id() != parent {
        return Ok(());
    }
    let socket = TcpListener::from_std(std::io::stdin().as_fd().try_clone_to_owned()?.into())?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?; // the socket is open once, to be closed once
    // From here on this process is a frontend of the table. The kernel notices its death, whatever the cause.
    let frontend = Table::options().inherited()?.join()?;
    let connections = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = socket.accept() => accepted,
            _ = terminate.recv() => break,
        };
        let Ok((stream, _)) = stream else {
            sleep(Duration::from_millis(50)).await; // no descriptor was left, say
            continue;
        };
        let frontend = frontend.clone();
        let service = service_fn(move |request| answer(frontend.clone(), request));
        let http = server::conn::http1::Builder::new();
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(socket);
    let _ = timeout(Duration::from_secs(30), connections.shutdown()).await;
    Ok(())
}

type Reply = Response<BoxBody<Bytes, hyper::Error>>;

/// Answers a request with what an engine answers, or with an error of our own.
async fn answer(frontend: Frontend, request: Request<Incoming>) -> Result<Reply, Infallible> {
    // The body comes first: while a client sends, no engine works for it, so nothing is counted.
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, 16 << 20).collect().await else {
        return Ok(error(StatusCode::PAYLOAD_TOO_LARGE, "too large"));
    };
    let body = body.to_bytes();
    // Tokens are counted beside the request, for `Policy::tokens()` and for caps in tokens. This is an estimate.
    let tokens = u32::try_from(body.len() / 4).unwrap_or(u32::MAX);
    // One atomic step, exact over all workers: choose the least loaded engine, and count the request there.
    let permit = match frontend.route_with(&headcount::Request::new().tokens(tokens)) {
        Ok(permit) => permit,
        // All engines are at their caps, or down. Both may change soon.
        Err(why) => {
            let mut refusal = error(StatusCode::SERVICE_UNAVAILABLE, &why.to_string());
            refusal.headers_mut().insert(RETRY_AFTER, 1.into());
            return Ok(refusal);
        }
    };
    let engine = permit.engine_name();
    let request = Request::from_parts(head, Full::new(body));
    let answer = forward(&engine, request, permit).await;
    Ok(answer.unwrap_or_else(|why| error(StatusCode::BAD_GATEWAY, &format!("{engine}: {why}"))))
}

/// Sends a request to its engine. The permit goes with the answer.
async fn forward(engine: &str, mut request: Request<Full<Bytes>>, permit: Permit) -> Result<Reply> {
    let address = engine.trim_start_matches("http://");
    (request.headers_mut()).insert(HOST, HeaderValue::from_str(address)?);
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    // The body of the answer owns the permit. hyper drops the body after its last byte, or as soon as the client
    // disconnects: then the request is no longer in flight, and the engine's connection is closed.
    Ok(answer.map(|body| {
        let body = body.map_frame(move |frame| {
            let _held = &permit;
            frame
        });
        body.boxed()
    }))
}

fn error(status: StatusCode, message: &str) -> Reply {
    let body = Full::from(format!("{message}\n")).map_err(|never| match never {});
    (Response::builder().status(status).body(body.boxed())).expect("a status and a body")
}

/// Starts an engine in this process that answers with as many tokens as `max_tokens` says, 20 a second.
async fn start_mock_engine() -> Result<String> {
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    let name = format!("http://{}", socket.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = socket.accept().await {
            let http = server::conn::http1::Builder::new();
            let connection = http.serve_connection(TokioIo::new(stream), service_fn(decode));
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    Ok(name)
}

async fn decode(request: Request<Incoming>) -> Result<Response<Channel<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let fields = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
    let tokens = fields["max_tokens"].as_u64().unwrap_or(16);
    let (mut client, body) = Channel::new(1);
    tokio::spawn(async move {
        for number in 0..tokens {
            sleep(Duration::from_millis(50)).await;
            let token = Bytes::from(format!("token {number}\n"));
            let Ok(()) = client.send_data(token).await else {
                break;
            }; // it has left
        }
    });
    Ok(Response::new(body))
}
