//! SIGHUP: the server takes another list of engines, under load.

use crate::deployment::{Deployment, StopClients, agent, complete, signal};
use crate::engine::{MockEngine, odd_engine, read_head, say};
use headcount::{EngineState, MAX_NAME_LEN, Table};
use headcount_tests::{Rounds, eventually};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

fn list(engines: &[SocketAddr]) -> String {
    let lines = engines
        .iter()
        .map(|engine| format!("http://{engine} weight=1\n"));
    format!("# engines\n\n{}", lines.collect::<String>())
}

fn reload(deployment: &Deployment, list: &str) {
    std::fs::write(deployment.file(), list).unwrap();
    signal(deployment.pid(), libc::SIGHUP);
}

#[test]
fn a_reload_under_load_loses_nothing() {
    let engines = MockEngine::several(3, "0.002");
    let [a, b, c] = [0, 1, 2].map(|engine| engines[engine].address);
    let deployment = Deployment::start_with_file(&list(&[a, b]));
    let mut long: Vec<_> = (0..8).map(|_| deployment.stream(1_000_000)).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let client = agent();
                    let mut served = 0;
                    while !over.load(Relaxed) {
                        let url = deployment.url("/v1/completions");
                        let (status, body) = complete(&client, &url, 2).unwrap();
                        assert_eq!(status, 200, "{body}");
                        served += 1;
                    }
                    served
                })
            })
            .collect();
        let here = |engine| deployment.state(engine) == Some(EngineState::Active);
        let stop = StopClients(&over);
        let mut rounds = Rounds::new(4, "reloads with requests at the engine that goes");
        for round in 0.. {
            if !rounds.another() {
                break;
            }
            // One goes and one comes, with requests in flight on both.
            let lists = [(&[b, c], a), (&[a, b], c)];
            let (stay, goes) = lists[round % 2];
            reload(&deployment, &list(stay));
            let mut left = 0;
            eventually("the new list", || {
                left = deployment.on(goes);
                stay.iter().all(|&e| here(e)) && !here(goes)
            });
            rounds.fell(left > 0);
            thread::sleep(Duration::from_millis(100));
        }
        drop(stop);
        let served: u32 = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum();
        println!("{served} requests during the reloads");
    });
    assert!(
        long.iter_mut().all(|stream| stream.token()),
        "what was in flight goes on"
    );
    reload(&deployment, &list(&[b]));
    eventually("the new list", || {
        deployment.state(a) == Some(EngineState::Leaving)
    });
    drop(long);
    deployment.settles();
    assert_eq!(
        deployment.state(a),
        None,
        "it is gone with its last request"
    );
    assert_eq!(deployment.in_flight(), [0]);
}

#[test]
fn a_reload_changes_caps_and_brings_back_what_was_drained() {
    let engines = MockEngine::several(1, "0.02");
    let address = engines[0].address;
    let deployment = Deployment::start_with_file(&format!("http://{address} max_in_flight=2"));
    let mut streams: Vec<_> = (0..2).map(|_| deployment.stream(1_000_000)).collect();
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        503
    );
    let table = headcount::Table::open(deployment.table_path()).unwrap();
    table.drain(0).unwrap();
    reload(
        &deployment,
        &format!("http://{address} weight=2.5 max_in_flight=3"),
    );
    let engine = || deployment.table.view().engines[0].clone();
    eventually("the new cap", || {
        engine().max_in_flight == Some(3) && engine().state == EngineState::Active
    });
    assert_eq!(engine().weight, 2.5);
    streams.push(deployment.stream(1_000_000));
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        503
    );
    drop(streams);
    deployment.settles();
}

#[test]
fn a_list_that_makes_no_sense_changes_nothing() {
    let engines = MockEngine::several(2, "0.002");
    let [a, b] = [0, 1].map(|engine| engines[engine].address);
    let deployment = Deployment::start_with_file(&list(&[a]));
    for nonsense in [
        String::new(),
        "# nothing\n".to_owned(),
        list(&[b, b]),
        format!("{}https://127.0.0.1:1\n", list(&[b])),
        format!("{}http://127.0.0.1:1/path\n", list(&[b])),
        format!("{}http://127.0.0.1:1=2\n", list(&[b])),
        format!("{}http://127.0.0.1:65536\n", list(&[b])),
        format!("{}http://127.0.0.1:0\n", list(&[b])),
        format!("{}http://127.0.0.1:\n", list(&[b])),
        format!("{}http://127.0.0.1:1 weight=-1\n", list(&[b])),
        format!("{}http://127.0.0.1:1 max_in_flight=0\n", list(&[b])),
        format!("{}http://127.0.0.1:1 max_tokens=9\n", list(&[b])),
        format!("{}http://127.0.0.1:1 colour=red\n", list(&[b])),
        format!("{}http://user@127.0.0.1:1\n", list(&[b])),
        format!("{}http://{}\n", list(&[b]), address_of(MAX_NAME_LEN + 1)),
    ] {
        reload(&deployment, &nonsense);
        thread::sleep(Duration::from_millis(30));
        assert_eq!(deployment.state(b), None, "{nonsense}");
        assert_eq!(
            complete(&agent(), &deployment.url("/v1/completions"), 1)
                .unwrap()
                .0,
            200
        );
    }
    // The parent has read all of them, and now reads a good one.
    reload(&deployment, &list(&[a, b]));
    eventually("the good list", || {
        deployment.state(b) == Some(EngineState::Active)
    });
    deployment.settles();
}

#[test]
fn a_list_may_begin_with_a_byte_order_mark() {
    let engines = MockEngine::several(2, "0.002");
    let [a, b] = [0, 1].map(|engine| engines[engine].address);
    let deployment = Deployment::start_with_file(&format!("\u{feff}http://{a}\r\n"));
    assert_eq!(deployment.state(a), Some(EngineState::Active));
    reload(&deployment, &format!("\u{feff}# both\n{}", list(&[a, b])));
    eventually("the list", || deployment.state(b).is_some());
}

#[test]
fn a_list_that_is_a_pipe_keeps_no_parent_waiting() {
    let engines = MockEngine::several(2, "0.002");
    let [a, b] = [0, 1].map(|engine| engines[engine].address);
    let deployment = Deployment::start_with_file(&list(&[a]));
    std::fs::remove_file(deployment.file()).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(deployment.file())
        .status();
    assert!(made.unwrap().success());
    signal(deployment.pid(), libc::SIGHUP);
    eventually("the refusal", || {
        deployment.log().contains("it is not a regular file")
    });
    std::fs::remove_file(deployment.file()).unwrap();
    reload(&deployment, &list(&[a, b]));
    eventually("the list", || deployment.state(b).is_some());
}

#[test]
fn a_list_that_has_to_wait_for_engines_to_finish_is_said_to_be_in_part() {
    let engines = MockEngine::several(3, "0.002");
    let [a, b, c] = [0, 1, 2].map(|engine| engines[engine].address);
    let directory = headcount_tests::directory();
    let made = Table::options().max_engines(2).max_frontends(8);
    drop(made.create(directory.path().join("table")).unwrap());
    let file = directory.path().join("engines");
    std::fs::write(&file, list(&[a])).unwrap();
    let options = ["--engines-file", file.to_str().unwrap()];
    let deployment = Deployment::start_on(directory, &[], &options);
    let before = deployment.log().len();
    let says = |what: &str| {
        eventually(what, || deployment.log()[before..].contains(what));
    };
    // No reload can add it.
    reload(&deployment, &list(&[a, b, c]));
    says("SIGHUP: the list has 3 engines, and the table has room for 2; list fewer");
    assert_eq!(deployment.state(b), None);
    // A later reload can add it.
    let mut stream = deployment.stream(1_000_000);
    reload(&deployment, &list(&[b, c]));
    let (first, second) = (
        format!("engine http://{b}: added"),
        format!("engine http://{c}: added"),
    );
    says(&format!(
        "changed: {first}, engine http://{a}: removed; apply the list again later"
    ));
    says(&format!("for the rest: {second}\n"));
    assert!(!deployment.log()[before..].contains("another process"));
    assert!(stream.token(), "what is in flight goes on");
    drop(stream);
    deployment.settles();
    signal(deployment.pid(), libc::SIGHUP);
    says(&format!("SIGHUP: {second}\n"));
}

#[test]
fn without_a_file_there_is_nothing_to_read_again() {
    let engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start_with_log(&[engines[0].address]);
    let table = Table::open(deployment.table_path()).unwrap();
    table.set_weight(0, 3.0).unwrap();
    signal(deployment.pid(), libc::SIGHUP);
    let line = "SIGHUP: the engines come from the command line, so there is no file to read again";
    eventually(line, || deployment.log().contains(line));
    assert!(deployment.log().contains("--engines-file"));
    assert_eq!(deployment.table.view().engines[0].weight, 3.0);
}

/// Returns `HOST:PORT` of an engine whose name, with `http://`, has so many bytes.
fn address_of(length: usize) -> String {
    let host = length - "http://".len() - ":1".len();
    format!("{}:1", "h".repeat(host))
}

#[test]
fn an_engine_may_have_the_longest_name_that_a_table_takes() {
    let engine = MockEngine::start("0.002");
    let longest = address_of(MAX_NAME_LEN);
    let listed = format!("{}http://{longest}\n", list(&[engine.address]));
    let deployment = Deployment::start_with_file(&listed);
    let names = || {
        let engines = deployment.table.view().engines;
        engines.into_iter().map(|e| e.name).collect::<Vec<_>>()
    };
    assert_eq!(names()[1], format!("http://{longest}"));
    reload(&deployment, &list(&[engine.address]));
    eventually("the engine's removal", || names().len() == 1);
}

/// An engine that reports each probe, and answers it well or badly as it is told.
fn patient_engine() -> (SocketAddr, mpsc::Receiver<()>, mpsc::Sender<bool>) {
    let (asked, is_asked) = mpsc::channel();
    let (told, is_well) = mpsc::channel();
    let ends = Mutex::new((asked, is_well));
    let engine = odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            let (asked, is_well) = &*ends.lock().unwrap();
            let _ = asked.send(());
            let status = match is_well.recv() {
                Ok(true) => "200 OK",
                _ => "503 Service Unavailable",
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            say(connection, &head);
        }
    });
    (engine, is_asked, told)
}

#[test]
fn a_probe_of_an_engine_that_is_gone_brings_up_no_other_in_its_slot() {
    let (old, old_is_asked, old_is_told) = patient_engine();
    let (new, new_is_asked, new_is_told) = patient_engine();
    let good = MockEngine::start("0.002");
    let listed = list(&[old, good.address]);
    let deployment = Deployment::start_slowly_probing(&listed);
    let table = Table::open(deployment.table_path()).unwrap();
    let index_of = |engine| Some(table.find(&format!("http://{engine}"))?.index());
    table.down(0).unwrap();
    old_is_asked.recv().unwrap();
    // While the old engine delays its answer, another one gets its row, and is down, too.
    reload(&deployment, &list(&[good.address]));
    eventually("the engine's removal", || index_of(old).is_none());
    reload(&deployment, &list(&[good.address, new]));
    eventually("the new engine", || index_of(new) == Some(0));
    table.down(0).unwrap();
    old_is_told.send(true).unwrap();
    // The next round of probes begins when the last one is over.
    eventually("a probe of the new engine", || {
        assert_eq!(deployment.state(new), Some(EngineState::Down));
        new_is_asked.try_recv().is_ok()
    });
    new_is_told.send(true).unwrap();
    eventually("the server's own answer", || {
        deployment.state(new) == Some(EngineState::Active)
    });
}
