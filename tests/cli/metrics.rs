//! `metrics`, scraped over HTTP.

use crate::command::{command, on};
use crate::scene::{Queue, Scene};
use headcount::{EngineStats, Table};
use headcount_tests::{Waited, eventually, prometheus_approves};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// A running server.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(paths: &[&Path]) -> Self {
        let mut child = command()
            .args(["metrics", "--listen", "127.0.0.1:0"])
            .args(paths)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .strip_prefix("listening on http://")
            .expect("says where it listens");
        let address = address.trim_end().trim_end_matches("/metrics").to_owned();
        Self { child, address }
    }

    /// What it has complained of.
    fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut said = String::new();
        let complaints = self.child.stderr.take();
        complaints.unwrap().read_to_string(&mut said).unwrap();
        said
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// The head and the body of an answer.
    fn ask(&self, method: &str, path: &str) -> (String, String) {
        let mut stream = self.connect();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.address
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    fn scrape(&self) -> String {
        let (head, body) = self.ask("GET", "/metrics");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(
            head.contains("content-type: text/plain; version=0.0.4"),
            "{head}"
        );
        body
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a sample, whose label of the table is left out.
fn value(metrics: &str, sample: &str) -> Option<f64> {
    let mut lines = metrics.lines().map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        let (before, table) = name.split_once("table=\"")?;
        // That of a bucket's bound is written after it.
        let (table, bound) = match table.split_once(",le=") {
            Some((table, bound)) => (format!("{table}}}"), format!("{{le={bound}")),
            None => (table.to_owned(), String::new()),
        };
        let before = before.trim_end_matches([',', '{']);
        let end = if before.contains('{') { "}" } else { &bound };
        assert!(table.ends_with("\"}"), "the label comes last: {line}");
        Some((format!("{before}{end}"), value.parse().ok()?))
    });
    lines.find_map(|line| {
        line.filter(|(name, _)| name == sample)
            .map(|(_, value)| value)
    })
}

#[test]
fn a_scrape_says_what_the_table_holds() {
    let mut scene = Scene::new();
    let server = Server::start(&[scene.path()]);
    let before = [
        (r#"engine_in_flight_requests{engine="gpu-0"}"#, Some(3.0)),
        (r#"engine_in_flight_tokens{engine="gpu-2"}"#, Some(200.0)),
        (r#"engine_max_in_flight_requests{engine="gpu-0"}"#, None),
        (
            r#"engine_max_in_flight_requests{engine="gpu-1"}"#,
            Some(64.0),
        ),
        (r#"engine_state{engine="gpu-0",state="active"}"#, Some(1.0)),
        ("snapshot_age_seconds", None),
        ("publisher_alive", Some(0.0)),
    ];
    hold(&server.scrape(), &before);
    let pid = scene.kill_one();
    scene.table.drain(0).unwrap();
    let mut publisher = scene.table.publisher().unwrap();
    let stats = EngineStats::new().waiting(4).running(20).kv_usage(0.41);
    publisher.publish(&[stats; 3]).unwrap();
    let metrics = server.scrape();
    let dead = format!("frontend_alive{{frontend=\"1\",pid=\"{pid}\"}}");
    let after = [
        (dead.as_str(), Some(0.0)),
        (r#"engine_state{engine="gpu-0",state="active"}"#, Some(0.0)),
        (
            r#"engine_state{engine="gpu-0",state="draining"}"#,
            Some(1.0),
        ),
        (r#"engine_kv_cache_usage_ratio{engine="gpu-1"}"#, Some(0.41)),
        (r#"engine_waiting_requests{engine="gpu-1"}"#, Some(4.0)),
        (r#"engine_running_requests{engine="gpu-1"}"#, Some(20.0)),
        ("publisher_alive", Some(1.0)),
    ];
    hold(&metrics, &after);
    let age = value(&metrics, "headcount_snapshot_age_seconds").expect("an age");
    assert!((0.0..60.0).contains(&age), "{age}");
    assert_eq!(scene.table.in_flight(), [3, 3, 3], "no scrape reaps");
}

/// Fails unless the samples, whose names lack `headcount_`, have these values; `None` if there is no sample.
#[track_caller]
fn hold(metrics: &str, samples: &[(&str, Option<f64>)]) {
    for (name, expected) in samples {
        let found = value(metrics, &format!("headcount_{name}"));
        assert_eq!(found, *expected, "{name} in {metrics}");
    }
}

#[test]
fn a_scrape_says_what_the_tables_caps_the_weights_and_the_frontends_are() {
    let engine = headcount::Engine::named("a").weight(2.5);
    let options = Table::options()
        .engine(engine.max_in_flight(5).max_tokens(500))
        .max_in_flight(9)
        .max_tokens(900);
    let table = headcount_tests::TestTable::new(&options);
    let before = since_1970();
    let frontend = table.join().unwrap();
    let request = headcount::Request::new().tokens(70);
    let _permits = frontend.route_many_with(2, &request).unwrap();
    let metrics = on(table.path(), "metrics PATH --once").fine();
    let pid = std::process::id();
    let of_frontend = |name| format!("frontend_{name}{{frontend=\"0\",pid=\"{pid}\"}}");
    hold(
        &metrics,
        &[
            (r#"engine_weight{engine="a"}"#, Some(2.5)),
            (r#"engine_max_in_flight_requests{engine="a"}"#, Some(5.0)),
            (r#"engine_max_in_flight_tokens{engine="a"}"#, Some(500.0)),
            ("table_max_in_flight_requests", Some(9.0)),
            ("table_max_in_flight_tokens", Some(900.0)),
            (&of_frontend("in_flight_requests"), Some(2.0)),
            (&of_frontend("in_flight_tokens"), Some(140.0)),
            (&of_frontend("alive"), Some(1.0)),
        ],
    );
    let joined = format!("headcount_{}", of_frontend("join_timestamp_seconds"));
    let joined = value(&metrics, &joined).expect("when it joined");
    assert!((before..=since_1970()).contains(&joined), "{joined}");
}

fn since_1970() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs_f64()
}

#[test]
fn a_scrape_says_who_waits_and_for_how_long() {
    let mut queue = Queue::new();
    let metrics = on(queue.path(), "metrics PATH --once").fine();
    let pid = queue.actors[3].pid();
    let of_frontend = format!("frontend_waiting{{frontend=\"3\",pid=\"{pid}\"}}");
    hold(
        &metrics,
        &[
            (r#"waiting{class="0"}"#, Some(1.0)),
            (r#"waiting{class="1"}"#, Some(1.0)),
            (r#"waiting{class="2"}"#, Some(1.0)),
            (r#"waiting{class="3"}"#, Some(0.0)),
            (r#"waiting_oldest_seconds{class="3"}"#, None),
            ("max_waiting", Some(3.0)),
            (r#"max_waiting_of_class{class="2"}"#, Some(1.0)),
            (r#"max_waiting_of_class{class="1"}"#, None),
            (&of_frontend, Some(1.0)),
            ("waited_seconds_count", Some(1.0)),
            (r#"waited_seconds_bucket{le="60"}"#, Some(1.0)),
            (r#"waited_seconds_bucket{le="+Inf"}"#, Some(1.0)),
            ("waiting_refused_total", Some(1.0)),
            ("waiting_timed_out_total", Some(1.0)),
            ("waiting_cancelled_total", Some(0.0)),
        ],
    );
    let first = value(&metrics, r#"headcount_waiting_oldest_seconds{class="0"}"#);
    assert!(
        first.is_some_and(|age| (0.0..60.0).contains(&age)),
        "{first:?}"
    );
    let sum = value(&metrics, "headcount_waited_seconds_sum").expect("a sum");
    let mut buckets = headcount::WaitedView::BOUNDS.iter().map(|bound| {
        let bucket = format!("headcount_waited_seconds_bucket{{le=\"{}\"}}", bound / 1e3);
        (bound / 1e3, value(&metrics, &bucket).expect("a bucket"))
    });
    assert!(
        buckets.all(|(bound, count)| count == f64::from(u8::from(sum <= bound))),
        "{metrics}"
    );
    queue.actors[0].finish_one();
    assert!(queue.actors[2].answer::<Waited>().outcome.is_ok());
    let metrics = on(queue.path(), "metrics PATH --once").fine();
    hold(
        &metrics,
        &[
            (r#"waiting{class="0"}"#, Some(0.0)),
            (r#"waiting_oldest_seconds{class="0"}"#, None),
            ("waited_seconds_count", Some(2.0)),
        ],
    );
    let scene = Scene::new();
    let metrics = on(scene.path(), "metrics PATH --once").fine();
    assert!(
        !metrics
            .lines()
            .any(|line| line.starts_with("headcount_waiting")
                || line.starts_with("headcount_waited")
                || line.starts_with("headcount_max_waiting")
                || line.starts_with("headcount_frontend_waiting")),
        "a table without a queue: {metrics}"
    );
}

#[test]
fn the_names_are_prometheus_own_and_those_documented() {
    let queue = Queue::new();
    let table = &queue.table;
    let engine = headcount::Engine::named("quote\"and\\backslash");
    table.add(engine.max_in_flight(0).max_tokens(50)).unwrap();
    table.set_total_max_in_flight(Some(2)).unwrap();
    table.set_total_max_tokens(Some(90)).unwrap();
    table
        .publisher()
        .unwrap()
        .publish(&[EngineStats::default()])
        .unwrap();
    let metrics = on(table.path(), "metrics PATH --once").fine();
    let names: BTreeSet<_> = (metrics.lines())
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let document = include_str!("../../docs/cli.md");
    let documented: BTreeSet<_> = (document.lines())
        .filter_map(|line| line.strip_prefix("| `headcount_")?.split(['`', '{']).next())
        .collect();
    let documented = documented.iter().map(|name| format!("headcount_{name}"));
    assert_eq!(
        names,
        documented
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect()
    );
    prometheus_approves(&metrics);
}

#[test]
fn requests_other_than_scrapes_are_answered_by_http_errors() {
    let scene = Scene::new();
    let server = Server::start(&[scene.path()]);
    assert!(server.ask("GET", "/").1.contains("/metrics"));
    assert!(server.ask("GET", "/other").0.starts_with("HTTP/1.1 404 "));
    let (head, _) = server.ask("POST", "/metrics");
    assert!(
        head.starts_with("HTTP/1.1 405 ") && head.contains("allow: GET"),
        "{head}"
    );
    assert_eq!(server.ask("HEAD", "/metrics").1, "");
    for nonsense in [
        "\r\n\r\n",
        "\0\0\0\0",
        "GET",
        "GET /metrics HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(nonsense.as_bytes()).unwrap();
    }
    // Clients that send nothing, and one that never reads, cost no other client an answer.
    let silent: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let mut deaf = server.connect();
    deaf.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    server.scrape();
    drop((silent, deaf));
}

#[test]
fn more_connections_than_it_serves_are_closed_and_do_not_end_it() {
    let scene = Scene::new();
    let server = Server::start(&[scene.path()]);
    let is_answered = || {
        let mut stream = server.connect();
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200")
    };
    assert!(is_answered());
    // Connections are accepted in their order, so the crowd is there first. On a machine that is
    // stopped for long it may be gone again, for want of a request.
    eventually("one too many is closed unanswered", || {
        let _crowd: Vec<_> = (0..64).map(|_| server.connect()).collect();
        !is_answered()
    });
    eventually("it answers again", is_answered);
}

#[test]
fn metrics_serve_the_table_that_lies_at_the_path() {
    let mut scene = Scene::new();
    let server = Server::start(&[scene.path()]);
    let metrics = server.scrape();
    assert!(metrics.contains("gpu-0"), "{metrics}");
    assert_eq!(value(&metrics, "headcount_table_linked"), Some(1.0));
    fs::remove_file(scene.path()).unwrap();
    let (head, body) = server.ask("GET", "/metrics");
    assert!(
        head.starts_with("HTTP/1.1 503 ") && body.contains("does not exist"),
        "{head} {body}"
    );
    Table::options().engines(2).create(scene.path()).unwrap();
    let metrics = server.scrape();
    assert!(
        !metrics.contains("gpu-0") && metrics.contains("{engine=\"1\","),
        "{metrics}"
    );
    // Its frontends still count in the table that was removed.
    assert_eq!(value(&metrics, "headcount_table_linked"), Some(0.0));
    scene.frontends.clear();
    assert_eq!(value(&server.scrape(), "headcount_table_linked"), Some(1.0));
}

#[test]
fn totals_are_counted() {
    let mut scene = Scene::new();
    let server = Server::start(&[scene.path()]);
    let total = |what: &str| {
        let sample = format!("headcount_engine_requests_{what}_total{{engine=\"gpu-1\"}}");
        value(&server.scrape(), &sample).expect("a total")
    };
    assert_eq!([total("admitted"), total("finished")], [3.0, 0.0]);
    scene.frontends[1].finish_all();
    scene.frontends[0].burst(6);
    assert_eq!([total("admitted"), total("finished")], [5.0, 1.0]);
}

#[test]
fn a_table_that_is_not_there_yet_is_served_as_soon_as_it_is() {
    let directory = headcount_tests::directory();
    let path = directory.path().join("table");
    let server = Server::start(&[&path]);
    let (head, body) = server.ask("GET", "/metrics");
    assert!(
        head.starts_with("HTTP/1.1 503 ") && body.contains("does not exist"),
        "{head} {body}"
    );
    let _table = Table::options().engines(2).create(&path).unwrap();
    let up = value(&server.scrape(), "headcount_table_up");
    assert_eq!(up, Some(1.0));
    let said = server.end();
    assert!(
        said.contains("does not exist yet; it is served as soon as it does"),
        "{said}"
    );
}

#[test]
fn a_table_that_comes_goes_or_is_replaced_is_logged_once() {
    let directory = headcount_tests::directory();
    let path = directory.path().join("table");
    let server = Server::start(&[&path]);
    let create = || Table::options().engines(2).create(&path).unwrap();
    let scrape = || (0..2).for_each(|_| drop(server.ask("GET", "/metrics")));
    scrape();
    let first = create();
    scrape();
    fs::remove_file(&path).unwrap();
    scrape();
    let second = create();
    scrape();
    fs::remove_file(&path).unwrap();
    let third = create();
    scrape();
    drop((first, second, third));
    let said = server.end();
    let path = path.display();
    let expected = [
        format!("headcount: {path} does not exist yet; it is served as soon as it does"),
        format!("headcount: {path} is there now, and is served"),
        format!("headcount: {path} does not exist; "),
        format!("headcount: {path} is there now, and is served"),
        format!("headcount: another table lies at {path} now, and is served"),
    ];
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{said}");
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(line.starts_with(expected), "{expected:?} in {said}");
    }
}

#[test]
fn once_prints_the_tables_that_can_be_read_and_names_the_others() {
    let scene = Scene::new();
    let ran = on(scene.path(), "metrics PATH-2 PATH PATH-3 --once");
    assert_eq!(ran.code, 3, "{ran:?}");
    prometheus_approves(&ran.out);
    assert!(ran.out.contains("{engine=\"gpu-0\","), "{ran:?}");
    let path = scene.path().display();
    for (table, up) in [("", 1), ("-2", 0), ("-3", 0)] {
        let up = format!("headcount_table_up{{table=\"{path}{table}\"}} {up}\n");
        assert!(ran.out.contains(&up), "{ran:?}");
        let named = ran.err.contains(&format!("{path}{table} does not exist"));
        assert_eq!(named, !table.is_empty(), "{ran:?}");
    }
    let ran = on(scene.path(), "metrics PATH-2 --once");
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
}

#[test]
fn where_to_listen_is_asked_for_with_an_example() {
    let scene = Scene::new();
    for (typed, port) in [
        ("9471", "9471"),
        (":18500", "18500"),
        ("localhost:80", "80"),
        ("nonsense", "9470"),
        ("::1", "9470"),
    ] {
        let ran = on(scene.path(), &format!("metrics PATH --listen {typed}"));
        assert_eq!(ran.code, 2, "{ran:?}");
        let example = format!("write 127.0.0.1:{port} to listen for this machine only");
        assert!(ran.err.contains(&example), "{ran:?}");
    }
}

#[test]
fn several_tables_are_served_by_one_process_and_told_apart() {
    let scene = Scene::new();
    let directory = headcount_tests::directory();
    let at = |name: &str| directory.path().join(name);
    let _other = Table::options().engines(2).create(at("other")).unwrap();
    let (other, late) = (at("other"), at("late"));
    let paths = [scene.path(), &other, &late, scene.path()];
    let server = Server::start(&paths);
    let metrics = server.scrape();
    prometheus_approves(&metrics);
    let of = |name: &str, label: &str, path: &Path| {
        let sample = format!("headcount_{name}{{{label}table=\"{}\"}} ", path.display());
        let mut found = metrics.lines().filter_map(|l| l.strip_prefix(&sample));
        let value = found.next().map(|value| value.parse().unwrap());
        assert_eq!(found.next(), None, "once: {metrics}");
        value
    };
    let admitted = |engine: &str, path| {
        let label = format!("engine=\"{engine}\",");
        of("engine_requests_admitted_total", &label, path)
    };
    assert_eq!(admitted("gpu-0", scene.path()), Some(3.0));
    assert_eq!(admitted("gpu-0", &other), None);
    assert_eq!(admitted("1", &other), Some(0.0));
    assert_eq!(of("table_up", "", scene.path()), Some(1.0));
    assert_eq!(of("table_up", "", &late), Some(0.0));
    assert_eq!(of("table_linked", "", &late), None);
    let _late = Table::options().engines(1).create(at("late")).unwrap();
    let metrics = server.scrape();
    let late = format!("headcount_table_up{{table=\"{}\"}} 1\n", late.display());
    assert!(metrics.contains(&late), "{metrics}");
}
