//! The table as text in columns.

use crate::columns::{Cell, align};
use crate::figures::{age, bar, bytes, short};
use crate::output::printable;
use crate::reading::{Reading, is_full, state};
use anstyle::{AnsiColor, Style};
use headcount::{EngineState, EngineView, FrontendView};
use std::fmt::Write;
use std::time::SystemTime;

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const NOTABLE: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn render(reading: &Reading, width: usize) -> String {
    let mut out = String::new();
    let view = &reading.view;
    let at_most = |cap: Option<u32>| cap.map_or(String::new(), |cap| format!(" of at most {cap}"));
    let path = printable(&reading.path.display().to_string());
    let tokens: u64 = view.engines.iter().map(|e| u64::from(e.tokens)).sum();
    let mut facts = format!(
        "{BOLD}{path}{BOLD:#}: {} in flight{}",
        reading.in_flight(),
        at_most(view.max_in_flight)
    );
    if tokens > 0 || view.max_tokens.is_some() {
        facts += &format!(", {} tokens{}", short(tokens), at_most(view.max_tokens));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{facts}\n{}", publications(reading));
    for warning in &reading.warnings {
        let style = if warning.is_serious() { BAD } else { NOTABLE };
        let _ = writeln!(out, "{style}! {warning}{style:#}");
    }
    let mut engines = vec![heads(&ENGINE_HEADS)];
    engines.extend(
        view.engines
            .iter()
            .map(|engine| engine_row(reading, engine)),
    );
    let _ = write!(out, "\n{}", align(&engines, width));
    let mut frontends = vec![heads(&FRONTEND_HEADS)];
    frontends.extend(view.frontends.iter().map(frontend_row));
    let _ = write!(out, "\n{}", align(&frontends, width));
    let facts = &reading.facts;
    let _ = writeln!(
        out,
        "\n{FAINT}room for {} engines and {} frontends of {} lanes; {}, mode {:04o}, format {}{FAINT:#}",
        facts.max_engines,
        facts.max_frontends,
        facts.lanes,
        bytes(facts.size),
        facts.mode,
        facts.format
    );
    out
}

/// Who publishes, and how old what they said is.
fn publications(reading: &Reading) -> String {
    let publisher = match reading.view.publisher {
        Some(pid) => format!("publisher pid {pid}"),
        None => "no publisher".to_owned(),
    };
    match &reading.view.snapshot {
        Some(snapshot) => format!("{publisher}, snapshot {} old", age(snapshot.age)),
        None => format!("{publisher}, no snapshot"),
    }
}

/// Heads of columns; one that begins with a space stands over numbers.
fn heads(names: &[&str]) -> Vec<Cell> {
    let head = |name: &&str| match name.strip_prefix(' ') {
        Some(name) => Cell::right(name).style(FAINT),
        None => Cell::left(*name).style(FAINT),
    };
    names.iter().map(head).collect()
}

const ENGINE_HEADS: [&str; 12] = [
    "ENGINE",
    "STATE",
    " IN-FL",
    "",
    " SHARE",
    " CAP",
    " TOKENS",
    " WAIT",
    " RUN",
    " KV",
    " ADMITTED",
    " FINISHED",
];

fn engine_row(reading: &Reading, engine: &EngineView) -> Vec<Cell> {
    let style = match engine.state {
        _ if is_full(engine) => BAD,
        EngineState::Active => GOOD,
        EngineState::Draining | EngineState::Leaving => NOTABLE,
        EngineState::Down => BAD,
    };
    let share = match reading.in_flight() {
        0 => "-".to_owned(),
        all => format!("{:.0}%", 100.0 * f64::from(engine.in_flight) / all as f64),
    };
    let cap = engine
        .max_in_flight
        .map_or("-".to_owned(), |cap| short(cap.into()));
    let stats = engine.stats;
    let stale = reading
        .warnings
        .iter()
        .any(|warning| matches!(warning, crate::warning::Warning::StaleSnapshot { .. }));
    let stat = |said: Option<String>| {
        let cell = Cell::right(said.unwrap_or("-".to_owned()));
        if stale { cell.style(FAINT) } else { cell }
    };
    vec![
        Cell::left(printable(&engine.name)),
        Cell::left(state(engine)).style(style),
        Cell::right(engine.in_flight.to_string()).style(BOLD),
        Cell::left(bar(reading.fullness(engine), 5)).style(style),
        Cell::right(share),
        Cell::right(cap),
        Cell::right(short(engine.tokens.into())),
        stat(stats.map(|s| short(s.waiting.into()))),
        stat(stats.map(|s| short(s.running.into()))),
        stat(stats.map(|s| format!("{:.0}%", s.kv_usage * 100.0))),
        Cell::right(short(engine.admitted)),
        Cell::right(short(engine.finished)),
    ]
}

const FRONTEND_HEADS: [&str; 6] = ["FRONTEND", " PID", "ALIVE", " IN-FL", " TOKENS", " JOINED"];

fn frontend_row(frontend: &FrontendView) -> Vec<Cell> {
    let alive = match frontend.alive {
        true => Cell::left("yes").style(GOOD),
        false => Cell::left("DEAD").style(BAD),
    };
    let joined = SystemTime::now().duration_since(frontend.since);
    vec![
        Cell::left(frontend.slot.to_string()),
        Cell::right(frontend.pid.to_string()),
        alive,
        Cell::right(frontend.in_flight.to_string()).style(BOLD),
        Cell::right(short(frontend.tokens)),
        Cell::right(format!("{} ago", age(joined.unwrap_or_default()))),
    ]
}
