//! Commands that change a table while frontends use it.

use crate::command::{command, on, on_while, run};
use crate::scene::Scene;
use headcount::{Engine, EngineState, Table};
use headcount_tests::{Actor, Damage, TestTable, directory, reaper_half_way};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

#[test]
fn create_and_rm_make_and_remove_a_table() {
    let directory = directory();
    let path = directory.path().join("table");
    let line = "create PATH --engine a=2.5 --engine http://b:1/v1?x=y --max-frontends 5 --threads 2 \
                --max-engines 9 --max-in-flight-total 100 --max-tokens-total 5000 --mode 0660";
    let said = on(&path, line).fine();
    assert!(
        said.contains("2 engines (room for 9), room for 5 frontends"),
        "{said}"
    );
    assert!(
        said.ends_with(
            "\n  @0 a: weight 2.5, no caps\n  @1 http://b:1/v1?x=y: weight 1, no caps\n  \
             all engines together: at most 100 requests, at most 5000 tokens\n"
        ),
        "{said}"
    );
    let table = Table::open(&path).unwrap();
    let (view, dimensions) = (table.view(), table.dimensions());
    assert_eq!(
        (view.max_in_flight, view.max_tokens),
        (Some(100), Some(5000))
    );
    assert_eq!(
        (
            dimensions.max_engines,
            dimensions.max_frontends,
            dimensions.threads
        ),
        (9, 5, 2)
    );
    assert_eq!(view.engines[1].name, "http://b:1/v1?x=y");
    assert_eq!(view.engines[0].weight, 2.5);
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    assert_eq!(
        on(&path, "rm PATH").fine(),
        format!("removed {}\n", path.display())
    );
    assert!(!path.exists());
}

#[test]
fn rm_refuses_a_table_in_use_unless_forced() {
    let mut scene = Scene::new();
    let pid = scene.frontends[0].pid();
    let said = on(scene.path(), "rm PATH").refused(1);
    assert!(said.contains(&format!("frontend 0 (pid {pid})")), "{said}");
    scene.frontends.clear();
    let mut publisher = Actor::opened(scene.path());
    publisher.become_publisher();
    let said = on(scene.path(), "rm PATH").refused(1);
    assert!(said.contains("publisher"), "{said}");
    let deployment = scene.table.deploy().unwrap();
    let said = on(scene.path(), "rm PATH").refused(1);
    let pid = std::process::id();
    assert!(said.contains(&format!("deployment (pid {pid})")), "{said}");
    drop(deployment);
    let said = on(scene.path(), "rm PATH --force").fine();
    assert!(
        said.contains("publisher") && said.contains("restart the processes"),
        "{said}"
    );
    assert!(!scene.path().exists());
}

#[test]
fn engines_are_drained_downed_and_brought_back() {
    let mut scene = Scene::new();
    let state = |scene: &Scene, n: usize| scene.table.view().engines[n].state;
    let said = on(scene.path(), "drain PATH gpu-0 @2").fine();
    assert_eq!(
        said,
        "gpu-0: drains, 3 in flight\ngpu-2: drains, 3 in flight\n"
    );
    assert_eq!(scene.frontends[0].burst(4), [0, 4, 0]);
    on(scene.path(), "undrain PATH gpu-0").fine();
    assert_eq!(scene.frontends[0].burst(4), [4, 0, 0]);
    on(scene.path(), "down PATH gpu-0").fine();
    assert_eq!(state(&scene, 0), EngineState::Down);
    on(scene.path(), "up PATH gpu-0").fine();
    assert_eq!(state(&scene, 0), EngineState::Active);
    assert_eq!(state(&scene, 2), EngineState::Draining);
}

#[test]
fn an_engine_that_is_leaving_is_said_to_be() {
    let mut scene = Scene::new();
    on(scene.path(), "remove PATH gpu-2").fine();
    for line in [
        "drain PATH gpu-2",
        "undrain PATH @2",
        "down PATH gpu-0 gpu-2",
        "remove PATH gpu-2",
        "weight PATH gpu-2 3",
        "cap PATH @2 3",
    ] {
        let said = on(scene.path(), line).refused(1);
        let leaving = "engine \"gpu-2\" is leaving: it was removed, ";
        assert!(said.contains(leaving), "{line}: {said}");
        assert!(said.contains("in flight (3)"), "{line}: {said}");
    }
    let view = scene.table.view();
    assert_eq!(view.engines[0].state, EngineState::Active, "all or nothing");
    // As the sentence says.
    on(scene.path(), "add PATH gpu-2").fine();
    let said = on(scene.path(), "drain PATH gpu-2").fine();
    assert_eq!(said, "gpu-2: drains, 3 in flight\n");
    on(scene.path(), "remove PATH gpu-2").fine();
    scene.frontends.iter_mut().for_each(|frontend| {
        frontend.finish_all();
    });
    let said = on(scene.path(), "drain PATH @2").refused(2);
    assert!(said.contains("there is no engine \"@2\""), "{said}");
}

#[test]
fn an_engine_goes_before_a_file() {
    let directory = directory();
    let path = directory.path().join("table");
    let table = Table::options().engines(2).create(&path).unwrap();
    let state = |engine: usize| table.view().engines[engine].state;
    // A file that is called as an engine is, where the command runs.
    std::fs::write(directory.path().join("0"), "no table").unwrap();
    let mut command = command();
    command
        .current_dir(directory.path())
        .env("HEADCOUNT_TABLE", &path);
    let ran = command.args(["down", "0", "1"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!([state(0), state(1)], [EngineState::Down; 2]);
}

#[test]
fn engines_come_and_go() {
    let mut scene = Scene::new();
    let said = on(
        scene.path(),
        "add PATH x y=3 --max-in-flight 8 --max-tokens 900",
    )
    .fine();
    assert_eq!(
        said,
        "x: added as @3, weight 1, at most 8 requests, at most 900 tokens\n\
         y: added as @4, weight 3, at most 8 requests, at most 900 tokens\n"
    );
    let view = scene.table.view();
    let y = &view.engines[4];
    assert_eq!(
        (y.weight, y.max_in_flight, y.max_tokens),
        (3.0, Some(8), Some(900))
    );
    assert_eq!(
        on(scene.path(), "remove PATH gpu-0").fine(),
        "gpu-0: removed, 3 in flight\n"
    );
    assert_eq!(scene.table.view().engines[0].state, EngineState::Leaving);
    assert!(on(scene.path(), "show PATH").fine().contains("leaving"));
    assert_eq!(scene.frontends[0].burst(2)[0], 0);
}

#[test]
fn all_engines_of_the_largest_table_change_at_once() {
    let directory = directory();
    let path = directory.path().join("table");
    let table = Table::options().engines(4096).max_frontends(1);
    let table = table.create(&path).unwrap();
    let all: Vec<_> = (0..4096).map(|n| format!("@{n}")).collect();
    let said = on(&path, &format!("drain PATH {}", all.join(" "))).fine();
    assert_eq!(said.matches(": drains, 0 in flight\n").count(), 4096);
    let view = table.view();
    assert!(
        view.engines
            .iter()
            .all(|e| e.state == EngineState::Draining)
    );
    assert_eq!(
        on(&path, "show PATH").fine().matches("! engine").count(),
        4096
    );
    assert!(
        on(&path, "metrics PATH --once")
            .fine()
            .contains("engine=\"4095\"")
    );
}

#[test]
fn changes_that_were_made_are_printed_though_the_rest_fails() {
    for _ in 0..60 {
        let table = TestTable::new(&Table::options().engines(2));
        let second = table.find("1").unwrap();
        // The command finds both engines, and waits for the lock to change the first.
        let list = hold_the_engine_list(table.path());
        let ran = on_while(table.path(), "remove PATH 0 1", || {
            thread::sleep(Duration::from_millis(60));
            drop(list);
            drop(table.remove(second));
        });
        if ran.code != 0 && !ran.out.is_empty() {
            assert_eq!(ran.out, "0: removed, 0 in flight\n");
            ran.refused(1);
            return;
        }
    }
    panic!("the other removal always came too late, or too early");
}

/// Keeps all others from changing engines until the file that is returned is closed.
fn hold_the_engine_list(path: &Path) -> OwnedFd {
    let file = File::options().write(true).open(path).unwrap();
    // SAFETY: a C structure of integers, of which zeros are a value.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_WRLCK as libc::c_short;
    // The byte that `src/shm/layout/lock_bytes.rs` names.
    (request.l_start, request.l_len) = (1, 1);
    // SAFETY: reads one `flock`, which lives until the call returns.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) };
    assert_eq!(code, 0, "no other process has it");
    file.into()
}

#[test]
fn an_engine_that_is_replaced_before_it_is_changed_is_not_mistaken_for_the_other() {
    let mut fell = [0; 3];
    let lines = ["remove PATH a", "weight PATH a 2.5", "cap PATH a 7"];
    for round in 0..60 {
        let n = round % lines.len();
        let options = Table::options().engine(Engine::named("a")).max_engines(1);
        let table = TestTable::new(&options);
        let old = table.find("a").unwrap();
        // The command finds the engine, and waits for the lock.
        let list = hold_the_engine_list(table.path());
        let ran = on_while(table.path(), lines[n], || {
            thread::sleep(Duration::from_millis(60));
            drop(list);
            drop(table.remove(old));
            table.add(Engine::named("new")).unwrap();
        });
        if ran.code != 0 {
            let said = ran.refused(1);
            assert!(said.contains("was removed meanwhile"), "{said}");
            fell[n] += 1;
        }
        let engines = table.view().engines;
        let new = &engines[0];
        assert_eq!(new.name, "new");
        assert_eq!((new.weight, new.max_in_flight), (1.0, None), "{}", lines[n]);
        if fell.iter().all(|&fell| fell >= 2) {
            return;
        }
    }
    panic!("of each, these came too late: {fell:?}");
}

#[test]
fn a_cap_that_is_not_named_is_not_set_to_what_it_was() {
    let mut fell = 0;
    for round in 0..60 {
        let table = TestTable::new(&Table::options().engine(Engine::named("a")));
        // The command finds the engine, and waits for the lock.
        let list = hold_the_engine_list(table.path());
        let ran = on_while(table.path(), "cap PATH a 7", || {
            thread::sleep(Duration::from_millis(60));
            drop(list);
            table.set_max_tokens(0, Some(900 + round)).unwrap();
        });
        let engine = &table.view().engines[0];
        assert_eq!(
            (engine.max_in_flight, engine.max_tokens),
            (Some(7), Some(900 + round))
        );
        // Then the other change came before it.
        fell += u32::from(
            ran.fine()
                .contains(&format!("at most {} tokens", 900 + round)),
        );
        if fell == 3 {
            return;
        }
    }
    panic!("the command was always first");
}

#[test]
fn caps_and_weights_change() {
    let scene = Scene::new();
    let caps = || {
        let view = scene.table.view();
        (view.engines[0].max_in_flight, view.engines[0].max_tokens)
    };
    let said = on(scene.path(), "cap PATH gpu-0 10").fine();
    assert_eq!(said, "gpu-0: at most 10 requests, no cap on tokens\n");
    on(scene.path(), "cap PATH gpu-0 --max-tokens 7000").fine();
    assert_eq!(caps(), (Some(10), Some(7000)));
    on(scene.path(), "cap PATH gpu-0 none").fine();
    assert_eq!(caps(), (None, Some(7000)));
    on(scene.path(), "cap PATH gpu-0 --max-in-flight 1048574").fine();
    assert_eq!(caps(), (Some(1_048_574), Some(7000)));
    // No count gets there, so it would be no cap.
    for (line, most) in [
        ("cap PATH gpu-0 1048575", "1048574"),
        ("cap PATH gpu-0 --max-in-flight 1048575", "1048574"),
        ("cap PATH gpu-0 --max-tokens 4294967295", "4294967294"),
        ("add PATH new --max-in-flight 1048575", "1048574"),
        ("add PATH new --max-tokens 4294967295", "4294967294"),
    ] {
        let ran = on(scene.path(), line);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(most), "{}", ran.err);
    }
    let form = "new max_in_flight=1048575";
    let said = run(["add", scene.path().to_str().unwrap(), form]).refused(2);
    assert!(said.contains("give a number from 1 to 1048574"), "{said}");
    let twice = on(scene.path(), "cap PATH gpu-0 5 --max-in-flight 5").refused(2);
    assert!(twice.contains("two caps on requests"), "{twice}");
    on(scene.path(), "weight PATH gpu-0 2.5").fine();
    assert_eq!(scene.table.view().engines[0].weight, 2.5);
}

#[test]
fn the_dead_are_reaped() {
    let mut scene = Scene::new();
    assert!(
        on(scene.path(), "reap PATH")
            .fine()
            .starts_with("reaped 0 ")
    );
    scene.kill_one();
    assert_eq!(scene.table.in_flight(), [3, 3, 3]);
    let said = on(scene.path(), "reap PATH").fine();
    assert_eq!(
        said,
        "reaped 1 dead frontend, which had 3 requests in flight\n"
    );
    assert_eq!(scene.table.in_flight(), [2, 2, 2]);
}

#[test]
fn only_the_dead_that_were_reaped_are_counted() {
    let table = TestTable::with_engines(2);
    let (mut reaper, stopped) = reaper_half_way(&table);
    let mut victim = Actor::joined(table.path());
    assert_eq!(victim.burst(3), [1, 2]);
    victim.kill();
    let said = on(table.path(), "reap PATH").refused(1);
    assert_eq!(
        said,
        "reaped 1 dead frontend, which had 3 requests in flight\n\
         not reaped: 1 dead frontend, which another process is reaping (stopped?); try again\n"
    );
    assert_eq!(table.in_flight(), [4, 3]);
    stopped.goes_on();
    assert_eq!(reaper.answer::<(u64, u64)>(), (1, 7));
    assert_eq!(table.in_flight(), [0, 0]);
}

#[test]
fn the_dead_of_a_damaged_table_are_counted_as_far_as_numbers_go() {
    let mut scene = Scene::new();
    let damage = Damage::to(&scene.table, scene.path());
    for lane in [0, 4] {
        (0..3).for_each(|row| damage.change("ledgers", lane, row, |_| i64::MAX as u64));
    }
    scene.kill_one();
    scene.kill_one();
    let ran = on(scene.path(), "reap PATH");
    assert!(ran.code < 100 && !ran.err.contains("panicked"), "{ran:?}");
    assert!(ran.out.contains("18446744073709551615 requests"), "{ran:?}");
}

#[test]
fn a_name_that_a_terminal_would_act_on_is_not_created() {
    let directory = directory();
    let path = directory.path().join("table");
    let path = path.to_str().unwrap();
    run(["create", path, "--engine", "a\x1b[2Jb"]).refused(2);
}

#[test]
fn a_list_of_engines_that_does_not_end_is_refused() {
    let directory = directory();
    let path = directory.path().join("table");
    let path = path.to_str().unwrap();
    let said = run(["create", path, "--engines-file", "/dev/zero"]).refused(2);
    assert!(said.contains("more than 16777216 bytes"), "{said}");
}
