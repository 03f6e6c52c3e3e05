//! The picture at every size.

use super::super::app::Action;
use super::*;
use crate::observed::Observed;
use headcount::{Engine, Table};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

fn app(engines: usize) -> App {
    let mut options = Table::options().engines(0);
    for n in 0..engines {
        options = options.engine(Engine::named(format!("http://10.0.0.{n}:8000")).max_in_flight(4));
    }
    let table = options.memfd().unwrap();
    let frontend = table.join().unwrap();
    let _permits = frontend.route_many(engines * 3 / 2).unwrap();
    let observed = || Observed::of(&table, Duration::from_secs(1));
    let mut app = App::new(observed());
    let start = Instant::now();
    (0..40).for_each(|n| app.note(start + Duration::from_millis(n * 2500), observed()));
    app
}

fn screen(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(move |x| buffer[(x, y)].symbol());
    (0..height).map(|y| row(y).collect()).collect()
}

fn press(app: &mut App, key: char) {
    let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE);
    app.act(&Event::Key(key));
}

#[test]
fn the_picture_is_drawn_at_every_size_with_everything_on_it() {
    for engines in [0, 1, 5, 60] {
        let mut app = app(engines);
        for over in [None, Some('?'), Some('d')] {
            if let Some(key) = over {
                press(&mut app, key);
            }
            for width in (1..45).chain((45..=130).step_by(12)) {
                for height in [1, 2, 3, 5, 8, 13, 30] {
                    screen(&mut app, width, height);
                }
            }
            press(&mut app, 'n');
        }
    }
}

#[test]
fn a_question_is_seen_whole_or_not_asked() {
    let mut app = app(5);
    let (mut asked, mut not) = (0, 0);
    for (key, verb) in [('d', "Drain"), ('u', "Undrain")] {
        for width in 1..90 {
            for height in 1..15 {
                press(&mut app, key);
                let shown = screen(&mut app, width, height);
                let shown: String = shown.concat();
                let shown = shown.replace(['\u{2502}', ' '], "");
                let at = format!("({width} by {height}): {shown}");
                match app.popup {
                    Some(_) => {
                        assert!(shown.contains(verb), "{at}");
                        assert!(shown.contains("8000"), "{at}");
                        assert!(
                            shown.contains("y/n") || shown.contains("yyes,anyotherkeyno"),
                            "{at}"
                        );
                        asked += 1;
                    }
                    None => {
                        assert!(width < 20, "it can be asked {at}");
                        let yes = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
                        assert_eq!(app.act(&Event::Key(yes)), Action::Nothing, "{at}");
                        not += 1;
                    }
                }
                press(&mut app, 'n');
            }
        }
    }
    assert!(asked > 2000 && not > 50, "{asked} asked, {not} not");
}

#[test]
fn the_result_of_a_change_is_seen_at_every_size() {
    let mut app = app(2);
    for (width, height) in [(20, 1), (20, 2), (20, 5), (50, 12), (120, 30)] {
        app.say("gpu-1 drains".to_owned());
        let shown = screen(&mut app, width, height);
        assert!(
            shown.last().unwrap().starts_with("gpu-1 drains"),
            "{shown:#?}"
        );
    }
}

#[test]
fn the_chosen_engine_is_always_on_the_screen() {
    let mut app = app(60);
    for height in 3..50 {
        for step in ["j", "jjjjjjjj", "kk", "s"] {
            step.chars().for_each(|key| press(&mut app, key));
            let chosen = app.engines()[app.chosen().unwrap()].name.clone();
            let shown = screen(&mut app, 100, height);
            let seen = shown
                .iter()
                .any(|line| line.contains(&format!("{chosen} ")));
            assert!(seen, "{chosen} at height {height}: {shown:#?}");
        }
    }
}

#[test]
fn the_last_line_is_used_when_there_are_many_engines() {
    let mut app = app(60);
    for height in [10, 24, 40] {
        let shown = screen(&mut app, 80, height);
        let engines = shown.iter().filter(|line| line.contains(":8000")).count();
        assert!(engines > usize::from(height) / 2 - 2, "{shown:#?}");
    }
}
