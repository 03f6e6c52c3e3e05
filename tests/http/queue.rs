//! Requests wait for a place in one queue over all workers. Here is what the tests of it share, and the first of them:
//! who is served when.

use crate::deployment::{Deployment, signal};
use crate::engine::{odd_engine, read_request, say};
use crate::stream::Stream;
use headcount::Table;
use headcount_tests::{Rounds, eventually};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// An engine in this process that answers each request when it is told to, and remembers in which order they came.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    came: Vec<String>,
    /// How many more are answered.
    may_pass: usize,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let own = Arc::clone(&state);
        let address = odd_engine(move |connection| {
            loop {
                let request = read_request(connection);
                let Some(target) = request.split(' ').nth(1) else {
                    return;
                };
                let (state, changed) = &*own;
                let mut state = state.lock().unwrap();
                state.came.push(target.trim_start_matches('/').to_owned());
                changed.notify_all();
                while state.may_pass == 0 {
                    state = changed.wait(state).unwrap();
                }
                state.may_pass -= 1;
                drop(state);
                say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        });
        Self { address, state }
    }

    /// Answers one request, that is here or the next.
    pub(crate) fn pass_one(&self) {
        self.state.0.lock().unwrap().may_pass += 1;
        self.state.1.notify_all();
    }

    /// Answers all requests, those that are here and all that come.
    pub(crate) fn open(&self) {
        self.state.0.lock().unwrap().may_pass = usize::MAX;
        self.state.1.notify_all();
    }

    /// Answers none from now on, and forgets those that have come.
    pub(crate) fn close(&self) {
        *self.state.0.lock().unwrap() = State::default();
    }

    /// The requests that have come, by their paths.
    pub(crate) fn came(&self) -> Vec<String> {
        self.state.0.lock().unwrap().came.clone()
    }

    pub(crate) fn comes_to_have(&self, count: usize) {
        eventually("as many requests at the engine", || {
            self.came().len() == count
        });
    }
}

/// Sends a request by this name, with more fields in its head.
pub(crate) fn ask(deployment: &Deployment, name: &str, fields: &str) -> Stream {
    let head = format!("GET /{name} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{fields}\r\n");
    Stream::send(deployment.address, &head)
}

/// Sends a request, and returns when it waits: so the next one comes behind it.
pub(crate) fn wait(deployment: &Deployment, name: &str, fields: &str) -> Stream {
    let before = waiting(deployment);
    let stream = ask(deployment, name, fields);
    comes_to_wait(deployment, before + 1);
    stream
}

/// How many requests wait.
pub(crate) fn waiting(deployment: &Deployment) -> u32 {
    let queue = deployment.table.view().queue;
    queue.map_or(0, |queue| {
        queue.classes.iter().map(|class| class.waiting).sum()
    })
}

pub(crate) fn comes_to_wait(deployment: &Deployment, count: u32) {
    eventually("as many requests in the queue", || {
        waiting(deployment) == count
    });
}

/// The workers of waiting requests, with the number of these.
pub(crate) fn waiting_at(deployment: &Deployment) -> Vec<(i32, u64)> {
    let frontends = deployment.table.view().frontends.into_iter();
    let waiting = frontends.filter(|frontend| frontend.waiting > 0);
    waiting
        .map(|frontend| (frontend.pid as i32, frontend.waiting))
        .collect()
}

/// For how many milliseconds the request of an answer has waited, if the answer says so.
pub(crate) fn waited(answer: &mut Stream) -> Option<u64> {
    field(answer, "x-headcount-waited-ms").map(|waited| waited.parse().unwrap())
}

pub(crate) fn field(answer: &mut Stream, name: &str) -> Option<String> {
    let mut lines = answer.head().lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.map(str::to_owned)
}

/// Takes an engine down in the table, as an operator does.
pub(crate) fn takes_down(deployment: &Deployment, engine: SocketAddr) {
    let table = Table::open(deployment.table_path()).unwrap();
    let (engines, name) = (table.view().engines, format!("http://{engine}"));
    let engine = engines.iter().find(|engine| engine.name == name);
    table.down(engine.unwrap().id).unwrap();
}

pub(crate) const ONE_PLACE: [&str; 4] = ["--max-in-flight", "1", "--queue", "1000"];

/// A deployment with one place and a queue, and these options. Its place is taken by a request of the name "first".
pub(crate) fn with_one_place(gate: &Gate, options: &[&str]) -> (Deployment, Stream) {
    let options = [&ONE_PLACE, options].concat();
    let deployment = Deployment::start(&[gate.address], &options);
    let first = ask(&deployment, "first", "");
    gate.comes_to_have(1);
    (deployment, first)
}

#[test]
fn who_comes_first_is_served_first_over_all_workers() {
    // A worker that gets no processor for 10 ms is passed over, so on a busy machine another order is no fault.
    let what = "queues in which no worker was passed over";
    let mut rounds = Rounds::new(1, what);
    while rounds.another() {
        let gate = Gate::new();
        let (deployment, mut first) = with_one_place(&gate, &[]);
        let start = Instant::now();
        let mut names = vec!["first".to_owned()];
        let mut streams = Vec::new();
        // Until several requests wait in each of two workers: by turns, as the workers accept them.
        let are_several = |at: &[(i32, u64)]| at.iter().filter(|(_, count)| *count > 2).count() > 1;
        while !are_several(&waiting_at(&deployment)) {
            assert!(names.len() < 200, "one worker gets all");
            let name = names.len().to_string();
            streams.push(wait(&deployment, &name, ""));
            names.push(name);
        }
        let at = waiting_at(&deployment);
        assert_eq!(gate.came(), ["first"], "one place");
        gate.pass_one();
        assert_eq!((first.status(), waited(&mut first)), (200, None));
        gate.comes_to_have(2);
        assert_eq!(waiting(&deployment) as usize, streams.len() - 1);
        gate.open();
        for stream in &mut streams {
            assert_eq!(stream.status(), 200);
        }
        let most = start.elapsed().as_millis() as u64;
        for stream in &mut streams {
            let waited = waited(stream).unwrap();
            assert!(waited <= most, "{waited} of {most} ms");
        }
        let mut came = gate.came();
        println!("by worker: {at:?}; served: {came:?}");
        rounds.fell(came == names);
        came.sort();
        names.sort();
        assert_eq!(came, names, "each once");
        deployment.settles();
        assert_eq!(waiting(&deployment), 0);
    }
}

#[test]
fn the_answer_says_how_long_its_request_has_waited() {
    let gate = Gate::new();
    let (deployment, first) = with_one_place(&gate, &["--workers=1"]);
    let mut second = wait(&deployment, "second", "");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let start = Instant::now();
    gate.open();
    assert_eq!(second.status(), 200);
    let waited = waited(&mut second).unwrap();
    let over = start.elapsed().as_millis() as u64 + 60_000;
    assert!((300..over).contains(&waited), "{waited} ms");
    drop(first);
}

#[test]
fn an_earlier_class_is_served_first() {
    let gate = Gate::new();
    let (deployment, _first) = with_one_place(&gate, &["--workers=1", "--class-header", "X-Class"]);
    let mut streams = Vec::new();
    for (name, field) in [
        ("three", "x-class: 3\r\n"),
        ("two", "X-CLASS: 2\r\n"),
        ("none", ""),
        ("also-two", "x-class:2\r\n"),
        ("one", "x-class: 1\r\n"),
        ("nought", "x-class: 0 \r\n"),
    ] {
        streams.push(wait(&deployment, name, field));
    }
    let queue = deployment.table.view().queue.unwrap();
    assert_eq!(queue.classes.map(|class| class.waiting), [2, 1, 2, 1]);
    gate.open();
    for stream in &mut streams {
        assert_eq!(stream.status(), 200);
    }
    let order = ["first", "none", "nought", "one", "two", "also-two", "three"];
    assert_eq!(gate.came(), order);
}

#[test]
fn a_class_that_is_none_is_refused_with_a_sentence() {
    let gate = Gate::new();
    let (deployment, _first) = with_one_place(&gate, &["--class-header", "x-class"]);
    for wrong in ["4", "-1", "00", "1.0", "high", "", "1, 2", "\u{e4}"] {
        let mut stream = ask(&deployment, "wrong", &format!("x-class: {wrong}\r\n"));
        assert_eq!(stream.status(), 400, "{wrong}");
        let said = stream.rest().0;
        assert!(said.contains("\"code\":\"invalid_class\""), "{said}");
        let right =
            "the field x-class names no class; give one number from 0, which is served first, to 3";
        assert!(said.contains(right), "{said}");
    }
    let mut stream = ask(&deployment, "wrong", "x-class: 1\r\nx-class: 1\r\n");
    assert_eq!(stream.status(), 400, "given twice");
    gate.open();
    for right in ["0", "1", "2", "3"] {
        let mut stream = ask(&deployment, right, &format!("x-class: {right}\r\n"));
        assert_eq!(stream.status(), 200, "{right}");
    }
}

/// Has so many requests wait for each of two tenants, one tenant after the other, and returns who was served first, by
/// the first letters of the names.
fn served(
    deployment: &Deployment,
    gate: &Gate,
    of_each: [(&str, usize); 2],
    first: usize,
) -> String {
    let before = gate.came().len();
    let mut streams = Vec::new();
    for (number, (field, count)) in of_each.into_iter().enumerate() {
        for _ in 0..count {
            let name = ["a", "b"][number];
            streams.push(wait(deployment, name, &format!("{field}\r\n")));
        }
    }
    gate.open();
    for stream in &mut streams {
        assert_eq!(stream.status(), 200);
    }
    gate.came()[before..before + first].concat()
}

fn count(served: &str, of: char) -> usize {
    served.matches(of).count()
}

#[test]
fn tenants_are_served_by_their_shares_whoever_sends_more() {
    let directory = headcount_tests::directory();
    let file = directory.path().join("tenants");
    // printf b | sha256sum
    let hash = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";
    let lines = format!("# keys\nkey-of-a a share=3\nsha256:{hash} b\n");
    std::fs::write(&file, lines).unwrap();
    let gate = Gate::new();
    let (deployment, _first) = with_one_place(&gate, &["--tenants", file.to_str().unwrap()]);
    let of_each = [
        ("Authorization: bearer key-of-a", 40),
        ("authorization: Bearer b", 8),
    ];
    let served = served(&deployment, &gate, of_each, 16);
    // Of 16, 12 are a's, but for workers that are passed over.
    assert!((10..=14).contains(&count(&served, 'a')), "{served}");
    println!("{served}");
}

#[test]
fn tenants_that_a_field_names_are_served_equally() {
    let gate = Gate::new();
    let (deployment, _first) = with_one_place(&gate, &["--tenant-header", "x-team"]);
    let served = served(
        &deployment,
        &gate,
        [("x-team: red", 30), ("x-team: green", 6)],
        10,
    );
    assert!((3..=7).contains(&count(&served, 'b')), "{served}");
    let long = format!("x-team: {}\r\n", "n".repeat(headcount::MAX_NAME_LEN + 1));
    for wrong in [&*long, "x-team: a\r\nx-team: b\r\n"] {
        let mut stream = ask(&deployment, "wrong", wrong);
        assert_eq!(stream.status(), 400);
        let said = stream.rest().0;
        assert!(said.contains("the field x-team names no tenant"), "{said}");
    }
    assert_eq!(ask(&deployment, "c", "x-team: \r\n").status(), 200);
}

#[test]
fn other_keys_have_a_line_of_their_own_and_no_client_is_served_before_its_turn() {
    let directory = headcount_tests::directory();
    let file = directory.path().join("tenants");
    std::fs::write(&file, "good good\n* guests class=2\n").unwrap();
    let gate = Gate::new();
    let options = [
        "--workers=1",
        "--tenants",
        file.to_str().unwrap(),
        "--class-header",
        "x-class",
    ];
    let (deployment, _first) = with_one_place(&gate, &options);
    let mut streams = Vec::new();
    for (name, fields) in [
        ("guest", "x-class: 0\r\n"),
        ("other", "Authorization: Bearer bad\r\n"),
        ("late", "Authorization: Bearer bad\r\nx-class: 3\r\n"),
        ("basic", "Authorization: Basic good\r\n"),
        ("modest", "Authorization: Bearer good\r\nx-class: 1\r\n"),
        ("good", "Authorization: Bearer good\r\n"),
    ] {
        streams.push(wait(&deployment, name, fields));
    }
    gate.pass_one();
    gate.comes_to_have(2);
    // The file is read again.
    std::fs::write(&file, "good good class=3\n").unwrap();
    signal(deployment.pid(), libc::SIGHUP);
    eventually("the new class", || {
        let class = || deployment.table.view().queue.unwrap().classes[3].waiting;
        let before = class();
        streams.push(wait(&deployment, "last", "Authorization: Bearer good\r\n"));
        class() > before
    });
    gate.open();
    for stream in &mut streams {
        assert_eq!(stream.status(), 200);
    }
    let came = gate.came();
    let last = came.iter().rposition(|name| name == "last").unwrap();
    assert_eq!(last, came.len() - 1);
    let came: Vec<_> = came.iter().filter(|name| *name != "last").collect();
    let order = ["first", "good", "modest", "guest", "other", "basic", "late"];
    assert_eq!(came, order);
}
