//! A table serves one deployment, and has the configuration with which that was started.

use crate::deployment::{Deployment, agent, complete, program, signal};
use crate::engine::{MockEngine, addresses};
use headcount::{Engine, Table};
use headcount_tests::eventually;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts a second deployment on the table, which has to end by itself. Returns its message.
fn second(table: &std::path::Path, engine: &str) -> String {
    let mut program = Command::new(program())
        .args(["--listen", "127.0.0.1:0", "--engine", engine, "--table"])
        .arg(table)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ended = None;
    let start = Instant::now();
    while ended.is_none() && start.elapsed() < Duration::from_secs(30) {
        ended = program.try_wait().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    if ended.is_none() {
        signal(program.id() as i32, libc::SIGTERM);
    }
    let said = program.wait_with_output().unwrap();
    assert_eq!(ended.and_then(|status| status.code()), Some(1), "{said:?}");
    String::from_utf8(said.stderr).unwrap()
}

#[test]
fn a_second_deployment_on_a_table_ends_and_the_first_serves_on() {
    let engines = MockEngine::several(2, "0.002");
    let first = Deployment::start(&[engines[0].address], &[]);
    let other = format!("http://{}", engines[1].address);
    let said = second(&first.table_path(), &other);
    let expected = format!("is served by process {}", first.pid());
    assert!(
        said.contains(&expected) && said.contains("a table of its own"),
        "{said}"
    );
    assert_eq!(first.state(engines[1].address), None);
    for _ in 0..8 {
        assert_eq!(
            complete(&agent(), &first.url("/v1/completions"), 1)
                .unwrap()
                .0,
            200
        );
    }
    assert_eq!(engines[1].stat("served"), 0);
    assert_eq!(engines[0].stat("served"), 8);
}

#[test]
fn the_next_deployment_starts_while_the_last_one_finishes_its_streams() {
    let engines = MockEngine::several(2, "0.02");
    let options = ["--drain-timeout", "3600"];
    let mut last = Deployment::start_logging(&addresses(&engines), &options, |_| {});
    let mut streams: Vec<_> = (0..4).map(|_| last.stream(1_000_000)).collect();
    signal(last.pid(), libc::SIGTERM);
    let next = last.next_on_its_table(&addresses(&engines));
    assert!(last.ended().is_none(), "it still finishes");
    assert_eq!(
        complete(&agent(), &next.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
    assert!(streams.iter_mut().all(|stream| stream.token()));
    assert_eq!(next.total(), 4, "what the last one has in flight counts");
    drop(streams);
    eventually("the end of the last deployment", || last.ended().is_some());
}

#[test]
fn a_changed_configuration_starts_and_holds() {
    let engines = MockEngine::several(2, "0.02");
    let [a, b] = [engines[0].address, engines[1].address];
    let mut last = Deployment::start(&[a], &[]);
    signal(last.pid(), libc::SIGTERM);
    eventually("the end of the server", || last.ended().is_some());
    let options = ["--max-in-flight-total", "3", "--max-in-flight", "2"];
    let mut next = last.next_with(&[a, b], &options);
    let view = next.table.view();
    assert_eq!(view.max_in_flight, Some(3));
    assert!(view.engines.iter().all(|e| e.max_in_flight == Some(2)) && view.engines.len() == 2);
    let brought = |what: &str| {
        let line = format!("brought the table to the configuration of this deployment: {what}\n");
        eventually(&line, || next.log().contains(&line));
    };
    brought("max_in_flight_total none, now 3");
    brought(&format!("engine http://{b}: added"));
    let streams: Vec<_> = (0..3).map(|_| next.stream(1_000_000)).collect();
    assert_eq!(
        complete(&agent(), &next.url("/v1/completions"), 1)
            .unwrap()
            .0,
        503
    );
    drop(streams);
    next.settles();
    // And back.
    signal(next.pid(), libc::SIGTERM);
    eventually("the end of the server", || next.ended().is_some());
    let again = next.next_with(&[b], &[]);
    let view = again.table.view();
    assert_eq!((view.max_in_flight, view.engines.len()), (None, 1));
    assert_eq!(view.engines[0].max_in_flight, None);
}

#[test]
fn a_table_that_the_command_has_made_is_taken() {
    let engine = MockEngine::start("0.002");
    let directory = headcount_tests::directory();
    let path = directory.path().join("table");
    let made = Table::options().engine(Engine::named("gpu-0").max_in_flight(8));
    drop(made.max_engines(4).max_frontends(8).create(&path).unwrap());
    let deployment = Deployment::start_on(directory, &[engine.address], &["--workers=1"]);
    let names: Vec<_> = (deployment.table.view().engines.into_iter())
        .map(|engine| engine.name)
        .collect();
    assert_eq!(names, [format!("http://{}", engine.address)]);
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
}

#[test]
fn changes_by_another_process_are_logged() {
    let engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start_with_log(&addresses(&engines));
    let table = Table::open(deployment.table_path()).unwrap();
    let added = table.add(Engine::named("http://127.0.0.1:1")).unwrap();
    let said = |what: &str| {
        let line = format!("another process has changed the table: {what}\n");
        eventually(&line, || deployment.log().contains(&line));
    };
    said("engine http://127.0.0.1:1: added");
    table.set_weight(added, 2.5).unwrap();
    said("engine http://127.0.0.1:1: weight 1, now 2.5");
    table.set_max_in_flight(added, Some(7)).unwrap();
    said("engine http://127.0.0.1:1: max_in_flight none, now 7");
    table.remove(added).unwrap();
    said("engine http://127.0.0.1:1: removed");
    table.set_total_max_in_flight(Some(5)).unwrap();
    said("max_in_flight_total none, now 5");
    table.set_total_max_in_flight(Some(8)).unwrap();
    said("max_in_flight_total 5, now 8");
    let lines = deployment.log().matches("another process").count();
    assert_eq!(lines, 6, "{}", deployment.log());
}

#[test]
fn a_cap_in_tokens_is_said_to_have_no_effect_where_none_are_counted() {
    let engines = MockEngine::several(1, "0.002");
    let remark = "; this deployment does not count tokens, so the cap has no effect; for caps in tokens, start it with --policy tokens or --max-tokens N\n";
    for (options, remark) in [(&[][..], remark), (&["--policy", "tokens"], "\n")] {
        let deployment = Deployment::start_logging(&addresses(&engines), options, |_| {});
        let table = Table::open(deployment.table_path()).unwrap();
        let said = |what: String| {
            let line = format!("another process has changed the table: {what}");
            eventually(&line, || deployment.log().contains(&line));
        };
        table.set_total_max_tokens(Some(9000)).unwrap();
        said(format!("max_tokens_total none, now 9000{remark}"));
        table.set_max_tokens(0, Some(50)).unwrap();
        let name = format!("engine http://{}", engines[0].address);
        said(format!("{name}: max_tokens none, now 50{remark}"));
        // Without a cap there is no remark.
        table.set_max_tokens(0, None).unwrap();
        said(format!("{name}: max_tokens 50, now none\n"));
        let added = Engine::named("http://127.0.0.1:1").max_tokens(50);
        table.add(&added).unwrap();
        let with = if remark == "\n" {
            ""
        } else {
            ", with a cap in tokens"
        };
        said(format!("engine http://127.0.0.1:1: added{with}{remark}"));
    }
}

#[test]
fn caps_that_another_process_sets_stand_until_the_list_is_read_again() {
    let engines = MockEngine::several(1, "0.002");
    let list = format!("http://{}\n", engines[0].address);
    let options = ["--max-in-flight-total", "5"];
    let deployment = Deployment::start_by_file(&list, &options);
    let table = Table::open(deployment.table_path()).unwrap();
    table.set_total_max_in_flight(Some(1)).unwrap();
    table.set_total_max_tokens(Some(9000)).unwrap();
    let said = |line: &str| eventually(line, || deployment.log().contains(line));
    said("max_in_flight_total 5, now 1\n");
    let stream = deployment.stream(1_000_000);
    let url = deployment.url("/v1/completions");
    assert_eq!(complete(&agent(), &url, 1).unwrap().0, 503);
    signal(deployment.pid(), libc::SIGHUP);
    said("SIGHUP: max_in_flight_total 1, now 5\n");
    said("SIGHUP: max_tokens_total 9000, now none\n");
    assert_eq!(complete(&agent(), &url, 1).unwrap().0, 200);
    drop(stream);
    deployment.settles();
}

/// Returns the error that the program or a worker logs, with three workers on a table with room for so
/// many processes.
fn error_with_room_for(room: usize, is_held: bool) -> String {
    let engine = MockEngine::start("0.002");
    let directory = headcount_tests::directory();
    let path = directory.path().join("table");
    let made = Table::options().max_engines(4).max_frontends(room);
    let table = made.create(&path).unwrap();
    // As if an earlier deployment still finished.
    let _held = is_held.then(|| table.join().unwrap());
    let mut parent = Command::new(program())
        .args(["--listen", "127.0.0.1:0", "--workers", "3"])
        .args(["--engine", &format!("http://{}", engine.address)])
        .arg("--table")
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let errors = BufReader::new(parent.stderr.take().unwrap());
    let said = errors.lines().find_map(|line| {
        let line = line.unwrap();
        line.starts_with("headcount-server: error: ")
            .then_some(line)
    });
    if is_held {
        assert!(parent.try_wait().unwrap().is_none(), "the others serve");
        signal(parent.id() as i32, libc::SIGTERM);
        assert!(parent.wait().unwrap().success());
    } else {
        let start = Instant::now();
        while parent.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = parent.try_wait().unwrap();
        if ended.is_none() {
            signal(parent.id() as i32, libc::SIGTERM);
            parent.wait().unwrap();
        }
        assert_eq!(ended.and_then(|status| status.code()), Some(1), "{said:?}");
        assert!(table.view().engines.is_empty(), "it changed nothing");
    }
    said.unwrap()
}

#[test]
fn a_table_that_is_too_small_for_all_workers_is_refused_at_once() {
    let said = error_with_room_for(2, false);
    assert!(
        said.contains("room for 2 processes") && said.contains("start with --workers 2"),
        "{said}"
    );
    let said = error_with_room_for(1, false);
    assert!(said.contains("room for one process,"), "{said}");
}

#[test]
fn a_table_whose_places_are_held_is_waited_for_in_words_of_this_program() {
    let said = error_with_room_for(3, true);
    assert!(
        said.contains("room for 3 processes, and that many are running")
            && said.contains("--workers"),
        "{said}"
    );
}

#[test]
fn an_engine_that_an_operator_drains_or_takes_down_is_said() {
    let engines = MockEngine::several(2, "0.002");
    let deployment = Deployment::start_with_log(&addresses(&engines));
    let table = Table::open(deployment.table_path()).unwrap();
    let name = format!("http://{}", engines[0].address);
    let engine = table.find(&name).unwrap();
    let said = |line: &str, times| {
        eventually(line, || deployment.log().matches(line).count() == times);
    };
    table.drain(engine).unwrap();
    let drained =
        format!("another process has changed the table: engine {name}: active, now draining\n");
    said(&drained, 1);
    table.up(engine).unwrap();
    let back =
        format!("another process has changed the table: engine {name}: draining, now active\n");
    said(&back, 1);
    // An engine that answers is soon up again, perhaps before the parent checks.
    let dead = engines.into_iter().next().unwrap().kill();
    assert_eq!(format!("http://{dead}"), name);
    table.down(engine).unwrap();
    said(
        &format!("engine {name}: active, now down; it is probed until it answers\n"),
        1,
    );
    table.up(engine).unwrap();
    said(
        &format!("another process has changed the table: engine {name}: down, now active\n"),
        1,
    );
    assert_eq!(deployment.log().matches("another process").count(), 3);
    // An engine that a probe brings up is logged once, in other words.
    table.down(engine).unwrap();
    said(
        &format!("engine {name}: active, now down; it is probed until it answers\n"),
        2,
    );
    let again = MockEngine::again(dead, "0.002");
    said(&format!("{name} is up again\n"), 1);
    table.drain(engine).unwrap();
    said(&drained, 2);
    assert_eq!(deployment.log().matches("another process").count(), 4);
    drop(again);
}

#[test]
fn a_reload_says_what_it_has_changed() {
    let engines = MockEngine::several(3, "0.002");
    let [a, b, c] = [0, 1, 2].map(|engine| engines[engine].address);
    let deployment = Deployment::start_with_file(&format!("http://{a}\nhttp://{b}\n"));
    let reload = |list: &str, line: &str| {
        std::fs::write(deployment.file(), list).unwrap();
        signal(deployment.pid(), libc::SIGHUP);
        eventually(line, || deployment.log().contains(line));
    };
    let same = format!("http://{b}\nhttp://{a}/ weight=1\n");
    reload(&same, "SIGHUP: nothing has changed");
    let drained = Table::open(deployment.table_path()).unwrap();
    drained
        .drain(drained.find(&format!("http://{a}")).unwrap())
        .unwrap();
    reload(
        &same,
        &format!("SIGHUP: engine http://{a}: takes requests again"),
    );
    let next = format!("http://{a} max_in_flight=7\nhttp://{c}\n");
    reload(&next, &format!("SIGHUP: engine http://{b}: removed"));
    let log = deployment.log();
    assert!(
        log.contains(&format!("SIGHUP: engine http://{c}: added")),
        "{log}"
    );
    let cap = format!("SIGHUP: engine http://{a}: max_in_flight none, now 7");
    assert!(log.contains(&cap), "{log}");
    // A list with a mistake in it changes nothing, and says where it is.
    reload("http://[::1\n", "engines, line 1: ");
    let log = deployment.log();
    let drained =
        format!("another process has changed the table: engine http://{a}: active, now draining");
    assert!(log.contains(&drained), "{log}");
    assert_eq!(log.matches("another process").count(), 1, "{log}");
}
