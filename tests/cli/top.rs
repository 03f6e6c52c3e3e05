//! `top`, driven in a terminal.

use crate::command::binary;
use crate::scene::Scene;
use crate::tmux::{Terminal, is_there};
use headcount::{Engine, EngineState, Permit, Request, Table};
use headcount_tests::{TestTable, eventually, skipped};
use std::fs;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A scene, and `top` that shows it.
fn watched(columns: u16, rows: u16) -> Option<(Scene, Terminal)> {
    if !is_there() {
        skipped("top", "tmux is not installed");
        return None;
    }
    let scene = Scene::new();
    let line = format!("'{}' top '{}'", binary().display(), scene.path().display());
    let terminal = Terminal::run(columns, rows, &line);
    terminal.wait_for_text("gpu-2");
    Some((scene, terminal))
}

/// A screen without what differs from run to run: the path, pids and ages.
fn plain(screen: &[String], scene: &Scene) -> Vec<String> {
    let path = scene.path().display().to_string();
    let pids = scene.frontends.iter().map(|f| format!("{:>8}", f.pid()));
    let pids: Vec<_> = pids.collect();
    let one = |line: &String| {
        let mut line = line.replace(&path, "PATH");
        for pid in &pids {
            line = line.replace(pid, "     PID");
        }
        match line.split_once("  ").filter(|_| line.ends_with(" ago")) {
            Some(_) => {
                let words: Vec<_> = line.split_whitespace().collect();
                words[..5].join(" ")
            }
            None => line,
        }
    };
    screen.iter().map(one).collect()
}

#[test]
fn the_screen_is_right_at_80_by_24() {
    let Some((scene, terminal)) = watched(80, 24) else {
        return;
    };
    // The rates are there once the table was read twice.
    let screen = terminal.wait_for("all of it", |screen| {
        screen.len() == 24
            && screen[5].contains("  0.0   0.0 ")
            && screen[23].contains("arrows choose")
    });
    let screen = plain(&screen, &scene);
    assert_eq!(screen.len(), 24);
    assert_eq!(screen[0], "PATH 9 in flight");
    assert!(
        screen[1].starts_with("spread 0 (minute 0), "),
        "{screen:#?}"
    );
    assert!(
        screen[1].ends_with("/s in, 0.0/s out, no snapshot"),
        "{screen:#?}"
    );
    let heads = "ENGINE STATE IN-FL LOAD LAST MINUTE IN/s OUT/s WAIT RUN KV";
    assert_eq!(
        screen[2].split_whitespace().collect::<Vec<_>>().join(" "),
        heads
    );
    for (n, line) in screen[3..6].iter().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words[..3],
            [&format!("gpu-{n}"), "active", "3"],
            "{screen:#?}"
        );
        // 3 of a cap of 64 is less than a character; 3 where no engine has more is the whole bar.
        assert!(
            line.contains(if n == 1 {
                "▍"
            } else {
                "████████"
            }),
            "{screen:#?}"
        );
        assert!(line.ends_with("0.0     -     -    -"), "{screen:#?}");
    }
    assert_eq!(screen[7], "FRONTEND      PID ALIVE  IN-FL TOKENS  JOINED");
    assert_eq!(screen[8..10], ["0 PID yes 6 600", "1 PID yes 3 0"]);
    assert_eq!(screen[10..23], [const { String::new() }; 13]);
    assert_eq!(
        screen[23],
        "q quit  ? help  p pause  s sort: number  d drain  u undrain  arrows choose"
    );
}

#[test]
fn the_screen_is_right_at_other_sizes_and_after_a_resize() {
    let Some((mut scene, terminal)) = watched(120, 40) else {
        return;
    };
    terminal.wait_for("all of it", |wide| {
        wide.len() == 40
            && wide[2].ends_with("TOKENS   CAP")
            && wide[4].ends_with("200    64")
            && wide[39].starts_with("q quit")
    });
    terminal.resize(40, 10);
    let small = terminal.wait_for("it is drawn anew", |screen| {
        screen.len() == 10 && screen[0].ends_with(" 9 in flight") && screen[9].starts_with("q ")
    });
    assert!(small[0].ends_with(" 9 in flight"), "{small:#?}");
    assert!(
        small[2].starts_with("ENGINE") && small[5].starts_with("gpu-2"),
        "{small:#?}"
    );
    assert!(
        small.iter().all(|line| line.chars().count() <= 40),
        "{small:#?}"
    );
    terminal.resize(12, 3);
    terminal.wait_for("two engines are left", |screen| {
        screen.len() == 3 && screen[1].starts_with("gpu-0") && screen[2].starts_with("gpu-1")
    });
    terminal.resize(1, 1);
    terminal.wait_for("something is left", |screen| screen.len() == 1);
    terminal.resize(80, 24);
    scene.frontends[0].finish_all();
    terminal.wait_for_text("PATH 3 in flight".trim_start_matches("PATH"));
    let screen = terminal.wait_for("all of it is back", |screen| {
        screen[23].contains("arrows choose")
    });
    assert!(screen[5].starts_with("gpu-2"), "{screen:#?}");
}

#[test]
fn keys_drain_and_undrain_but_ask_first() {
    let Some((scene, terminal)) = watched(80, 24) else {
        return;
    };
    let state = |n: usize| scene.table.view().engines[n].state;
    terminal.press("Down");
    terminal.press("d");
    terminal.wait_for_text("Drain gpu-1?");
    terminal.press("n");
    terminal.wait_for("the question is gone", |screen| {
        !screen.iter().any(|line| line.contains("Drain gpu-1?"))
    });
    assert_eq!(state(1), EngineState::Active);
    terminal.press("d");
    terminal.wait_for_text("Drain gpu-1?");
    terminal.press("y");
    terminal.wait_for_text("gpu-1 drains");
    terminal.wait_for_text("! engine gpu-1 drains: 3 in flight");
    assert_eq!(
        [state(0), state(1), state(2)],
        [
            EngineState::Active,
            EngineState::Draining,
            EngineState::Active
        ]
    );
    terminal.press("u");
    terminal.wait_for_text("Undrain gpu-1?");
    terminal.press("y");
    terminal.wait_for_text("gpu-1 takes requests");
    assert_eq!(state(1), EngineState::Active);
    assert_eq!(terminal.knows("alternate_on"), "1");
    terminal.press("q");
    eventually("it quits", || terminal.knows("alternate_on") == "0");
}

/// A table of weights and caps on tokens, and `top` that shows it.
fn weighty(columns: u16, rows: u16) -> Option<(TestTable, Vec<Permit>, Terminal)> {
    if !is_there() {
        skipped("top", "tmux is not installed");
        return None;
    }
    let options = Table::options()
        .engine(Engine::named("gpu-0").weight(3.0).max_tokens(1000))
        .engine(Engine::named("gpu-1"));
    let table = TestTable::new(&options);
    let request = Request::new().tokens(154).pin(0_usize);
    let permits = table.join().unwrap().route_many_with(6, &request).unwrap();
    let line = format!("'{}' top '{}'", binary().display(), table.path().display());
    let terminal = Terminal::run(columns, rows, &line);
    terminal.wait_for_text("gpu-1");
    Some((table, permits, terminal))
}

#[test]
fn weights_caps_on_tokens_and_refusals_are_on_the_screen() {
    let Some((table, _permits, terminal)) = weighty(120, 30) else {
        return;
    };
    terminal.wait_for("weights and caps on tokens", |screen| {
        if screen.len() < 30 {
            return false;
        }
        let words: Vec<_> = screen[4].split_whitespace().collect();
        screen[2].starts_with("! engine gpu-0 has 924 of at most 1000 tokens")
            && screen[3].contains("WEIGHT")
            && screen[3].contains("TOKENS TOK-CAP")
            && words.contains(&"3")
            && words.contains(&"1000")
    });
    let deployment = table.deploy().unwrap();
    let pid = std::process::id();
    terminal.wait_for("the deployment", |screen| {
        screen[1].ends_with(&format!(", no snapshot, deployment pid {pid}"))
    });
    drop(deployment);
    let frontend = table.join().unwrap();
    let request = Request::new().tokens(154).pin(0_usize);
    terminal.wait_for("refusals per second", |screen| {
        assert!(frontend.route_with(&request).is_err());
        screen[1].contains("/s refused, 0.0/s in, 0.0/s out, refused for engines' caps on tokens")
    });
    terminal.resize(50, 12);
    terminal.wait_for("what is cut has a mark", |screen| {
        screen.get(2).is_some_and(|warning| {
            warning.starts_with("! engine gpu-0 has 924") && warning.ends_with('…')
        })
    });
    for (columns, rows) in [(50, 12), (20, 5)] {
        terminal.resize(columns, rows);
        terminal.wait_for("it is drawn anew", |screen| {
            let is_there = |text: &str| screen.iter().any(|line| line.contains(text));
            screen.len() == usize::from(rows)
                && screen[0].contains("6 in flight")
                && screen[usize::from(rows) - 1].starts_with("q ")
                && is_there("gpu-0")
                && (rows < 12 || is_there("WEIGHT"))
        });
    }
}

#[test]
fn a_question_is_seen_on_a_small_screen_with_how_to_answer_it() {
    let Some((table, _permits, terminal)) = weighty(20, 5) else {
        return;
    };
    let state = || table.view().engines[1].state;
    let sees = |what: &[&str]| {
        terminal.wait_for("the question", |screen| {
            let shown = screen.concat();
            what.iter().all(|text| shown.contains(text))
        })
    };
    terminal.press("Down");
    for (columns, rows, answer) in [(20, 5, "no"), (20, 2, "y/n"), (17, 1, "y/n"), (9, 4, "y/n")] {
        terminal.resize(columns, rows);
        terminal.wait_for("the size", |screen| screen.len() == usize::from(rows));
        terminal.press("d");
        sees(&["Drain", "gpu-1", answer]);
        terminal.press("n");
        terminal.wait_for("no question", |screen| !screen.concat().contains("Drain"));
        assert_eq!(state(), EngineState::Active);
    }
    terminal.resize(20, 5);
    terminal.press("d");
    sees(&["Drain gpu-1?", "y yes"]);
    terminal.press("y");
    terminal.wait_for_text("gpu-1 drains");
    assert_eq!(state(), EngineState::Draining);
    // Where there is no room to ask, a key asks nothing, and another answers nothing. It may take a while
    // until the program has the new size, and asks until then.
    terminal.resize(4, 2);
    eventually("there is no room", || {
        terminal.press("u");
        let mut screen = Vec::new();
        eventually("something is said", || {
            screen = terminal.screen();
            screen.concat().contains("y/n") || screen.concat().contains("the")
        });
        let is_small = !screen.concat().contains("y/n");
        terminal.press(if is_small { "y" } else { "n" });
        is_small
    });
    terminal.resize(40, 5);
    terminal.wait_for("all of it is back", |screen| {
        screen.len() == 5 && screen[0].ends_with("6 in flight")
    });
    assert_eq!(state(), EngineState::Draining);
}

#[test]
fn keys_sort_pause_and_help() {
    let Some((mut scene, terminal)) = watched(80, 24) else {
        return;
    };
    scene.frontends[0].route_pinned(2);
    terminal.wait_for_text(" 10 in flight");
    terminal.press("s");
    terminal.press("s");
    terminal.wait_for("the fullest comes first", |screen| {
        screen[3].starts_with("gpu-2")
    });
    terminal.press("p");
    terminal.wait_for_text("PAUSED");
    scene.frontends[0].finish_all();
    terminal.press("?");
    terminal.wait_for_text("Help: any key closes it");
    // Also the one that ends it otherwise.
    terminal.press("q");
    let paused = terminal.wait_for("the help is gone", |screen| {
        !screen.iter().any(|line| line.contains("Help"))
    });
    assert!(paused[0].contains(" 10 in flight"), "{paused:#?}");
    terminal.press("p");
    terminal.wait_for_text(" 3 in flight");
    let pid = scene.kill_one();
    terminal.wait_for_text(&format!("(pid {pid}) is dead and holds 3"));
    terminal.wait_for_text("DEAD");
    let colours = terminal.coloured();
    // Red is written as a colour of its own, or as the second of the palette.
    let red = ["\x1b[31m", "\x1b[38;5;1m"];
    assert!(red.iter().any(|red| colours.contains(red)), "{colours:?}");
    fs::remove_file(scene.path()).unwrap();
    terminal.wait_for("old numbers are not shown as if they were new", |screen| {
        let said = screen.join(" ");
        screen[0].ends_with(" in flight NOT LIVE")
            && said.contains(" was removed; what is shown is ")
            && said.contains(" old, and is live again when a table can be read there")
    });
    let _next = Table::options()
        .engine(Engine::named("next"))
        .create(scene.path())
        .unwrap();
    terminal.wait_for("it is live again", |screen| {
        screen[0].ends_with(" 0 in flight") && !screen.concat().contains("was removed")
    });
}

#[test]
fn the_busiest_comes_first_by_rate() {
    let Some((mut scene, terminal)) = watched(80, 24) else {
        return;
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let frontend = &mut scene.frontends[0];
        scope.spawn(|| {
            while !over.load(Relaxed) {
                frontend.route_pinned(2);
                frontend.finish_all();
            }
        });
        // Also when this panics.
        let seen = std::panic::catch_unwind(AssertUnwindSafe(|| {
            (0..3).for_each(|_| terminal.press("s"));
            terminal.wait_for("the busiest comes first", |screen| {
                screen[23].contains("s sort: rate") && screen[3].starts_with("gpu-2")
            });
        }));
        over.store(true, Relaxed);
        assert!(seen.is_ok());
    });
}

#[test]
fn rates_are_shown() {
    let Some((mut scene, terminal)) = watched(80, 24) else {
        return;
    };
    for frontend in &mut scene.frontends {
        frontend.churn(1);
    }
    // How many depends on the machine.
    terminal.wait_for("requests per second", |screen| {
        let words: Vec<_> = screen[3].split_whitespace().collect();
        screen[1].contains("/s in") && !screen[1].contains(" 0.0/s in") && !words.contains(&"0.0")
    });
}
