//! The table as text in columns.

use crate::format::{age, bar, bytes, count, short, weight};
use crate::observed::{Observed, is_full, reason_name, state};
use crate::output::{printable, printable_path};
use crate::queue::{who_waited, who_waits};
use crate::text_table::{Cell, align, narrowest};
use anstyle::{AnsiColor, Style};
use headcount::{EngineState, EngineView, FrontendView};
use std::fmt::Write;
use std::time::SystemTime;

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const NOTABLE: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn render(observed: &Observed, width: usize) -> String {
    let mut out = String::new();
    let view = &observed.view;
    let at_most = |cap: Option<u32>| cap.map_or(String::new(), |cap| format!(" of at most {cap}"));
    let path = printable_path(&observed.path);
    let tokens: u64 = view.engines.iter().map(|e| u64::from(e.tokens)).sum();
    let mut dimensions = format!(
        "{BOLD}{path}{BOLD:#}: {} in flight{}",
        observed.in_flight(),
        at_most(view.max_in_flight)
    );
    if tokens > 0 || view.max_tokens.is_some() {
        dimensions += &format!(", {} tokens{}", short(tokens), at_most(view.max_tokens));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{dimensions}\n{}", publications(observed));
    if let Some(refusals) = refusals(observed) {
        let _ = writeln!(out, "{refusals}");
    }
    if let Some(queue) = &view.queue {
        let _ = writeln!(out, "queue: {}", who_waits(queue));
        if let Some(waited) = who_waited(queue) {
            let _ = writeln!(out, "waited since its creation: {waited}");
        }
    }
    for warning in &observed.warnings {
        let style = if warning.is_serious() { BAD } else { NOTABLE };
        let _ = writeln!(out, "{style}! {warning}{style:#}");
    }
    let _ = write!(out, "\n{}", engines(observed, width));
    let mut names = FRONTEND_HEADS.to_vec();
    if view.queue.is_some() {
        names.insert(WAITING_AT, " WAIT");
    }
    let mut frontends = vec![heads(&names)];
    frontends.extend((view.frontends.iter()).map(|f| frontend_row(f, view.queue.is_some())));
    let _ = write!(out, "\n{}", align(&frontends, width));
    let dimensions = &observed.dimensions;
    let _ = writeln!(
        out,
        "\n{FAINT}room for {} and {} of {}; {}, mode {:04o}, format {}{FAINT:#}",
        count(dimensions.max_engines as u64, "engine"),
        count(dimensions.max_frontends as u64, "frontend"),
        count(dimensions.threads as u64, "thread"),
        bytes(dimensions.size),
        dimensions.mode,
        dimensions.format
    );
    out
}

/// The publisher, the age of the snapshot, and the deployment, if there is one.
fn publications(observed: &Observed) -> String {
    let publisher = match observed.view.publisher {
        Some(pid) => format!("publisher pid {pid}"),
        None => "no publisher".to_owned(),
    };
    let snapshot = match &observed.view.snapshot {
        Some(snapshot) => format!("snapshot {} old", age(snapshot.age)),
        None => "no snapshot".to_owned(),
    };
    let deployment = observed.view.deployment;
    let deployment = deployment.map_or(String::new(), |pid| format!(", deployment pid {pid}"));
    format!("{publisher}, {snapshot}{deployment}")
}

/// The refusals by their reasons, if there are any.
fn refusals(observed: &Observed) -> Option<String> {
    let refusals = &observed.view.refusals_total;
    let reasons = refusals.by_reason();
    let reasons = reasons.iter().filter(|(_, count)| *count > 0);
    let reasons: Vec<_> = reasons
        .map(|(reason, count)| format!("{} for {}", short(*count), reason_name(reason)))
        .collect();
    (!reasons.is_empty()).then(|| format!("refused since its creation: {}", reasons.join(", ")))
}

/// The heads of columns. One that begins with a space is aligned to the right.
fn heads(names: &[&str]) -> Vec<Cell> {
    let head = |name: &&str| match name.strip_prefix(' ') {
        Some(name) => Cell::right(name).style(FAINT),
        None => Cell::left(*name).style(FAINT),
    };
    names.iter().map(head).collect()
}

/// A column of engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Name,
    State,
    InFlight,
    Bar,
    Share,
    Weight,
    Cap,
    Tokens,
    TokenCap,
    Waiting,
    Running,
    KvUsage,
    Admitted,
    Finished,
}

/// In the order in which they are shown.
const SHOWN: [Column; 14] = [
    Column::Name,
    Column::State,
    Column::InFlight,
    Column::Bar,
    Column::Share,
    Column::Weight,
    Column::Cap,
    Column::Tokens,
    Column::TokenCap,
    Column::Waiting,
    Column::Running,
    Column::KvUsage,
    Column::Admitted,
    Column::Finished,
];

/// The columns that are left out where there is no room, the least important first.
const SPARED: [Column; 8] = [
    Column::Share,
    Column::Finished,
    Column::Admitted,
    Column::Running,
    Column::KvUsage,
    Column::Waiting,
    Column::Bar,
    Column::Tokens,
];

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Name => "ENGINE",
            Self::State => "STATE",
            Self::InFlight => " IN-FL",
            Self::Bar => "LOAD",
            Self::Share => " SHARE",
            Self::Weight => " WEIGHT",
            Self::Cap => " CAP",
            Self::Tokens => " TOKENS",
            Self::TokenCap => " TOK-CAP",
            Self::Waiting => " WAIT",
            Self::Running => " RUN",
            Self::KvUsage => " KV",
            Self::Admitted => " ADMITTED",
            Self::Finished => " FINISHED",
        }
    }
}

/// The engines in columns, within a width: names are cut first, then columns are left out.
fn engines(observed: &Observed, width: usize) -> String {
    let mut columns = SHOWN.to_vec();
    if !observed.has_weights() {
        columns.retain(|column| *column != Column::Weight);
    }
    if !observed.has_token_caps() {
        columns.retain(|column| *column != Column::TokenCap);
    }
    let rows = |columns: &[Column]| {
        let names: Vec<_> = columns.iter().map(|column| column.head()).collect();
        let mut rows = vec![heads(&names)];
        rows.extend(observed.view.engines.iter().map(|e| {
            let cell = |column: &Column| cell(observed, e, *column);
            columns.iter().map(cell).collect::<Vec<_>>()
        }));
        rows
    };
    let mut shown = rows(&columns);
    for spared in SPARED {
        if narrowest(&shown) <= width {
            break;
        }
        columns.retain(|column| *column != spared);
        shown = rows(&columns);
    }
    align(&shown, width)
}

fn cell(observed: &Observed, engine: &EngineView, column: Column) -> Cell {
    let style = match engine.state {
        _ if is_full(engine) => BAD,
        EngineState::Active => GOOD,
        EngineState::Down => BAD,
        _ => NOTABLE,
    };
    let cap = |cap: Option<u32>| Cell::right(cap.map_or("-".to_owned(), |cap| short(cap.into())));
    let stats = engine.stats;
    let stat = |figure: Option<String>| {
        let cell = Cell::right(figure.unwrap_or("-".to_owned()));
        if observed.is_stale() {
            cell.style(FAINT)
        } else {
            cell
        }
    };
    match column {
        Column::Name => Cell::left(printable(&engine.name)),
        Column::State => Cell::left(state(engine)).style(style),
        Column::InFlight => Cell::right(engine.in_flight.to_string()).style(BOLD),
        Column::Bar => Cell::left(bar(observed.fullness(engine), 5)).style(style),
        Column::Share => Cell::right(match observed.in_flight() {
            0 => "-".to_owned(),
            all => format!("{:.0}%", 100.0 * f64::from(engine.in_flight) / all as f64),
        }),
        Column::Weight => Cell::right(weight(engine.weight)),
        Column::Cap => cap(engine.max_in_flight),
        Column::Tokens => Cell::right(short(engine.tokens.into())),
        Column::TokenCap => cap(engine.max_tokens),
        Column::Waiting => stat(stats.map(|s| short(s.waiting.into()))),
        Column::Running => stat(stats.map(|s| short(s.running.into()))),
        Column::KvUsage => stat(stats.map(|s| format!("{:.0}%", s.kv_usage * 100.0))),
        Column::Admitted => Cell::right(short(engine.admitted_total)),
        Column::Finished => Cell::right(short(engine.finished_total)),
    }
}

const FRONTEND_HEADS: [&str; 6] = ["FRONTEND", " PID", "ALIVE", " IN-FL", " TOKENS", " JOINED"];
/// Where the column of waiting requests is, if the table has a queue.
const WAITING_AT: usize = 5;

fn frontend_row(frontend: &FrontendView, has_queue: bool) -> Vec<Cell> {
    let alive = if frontend.alive {
        Cell::left("yes").style(GOOD)
    } else {
        Cell::left("DEAD").style(BAD)
    };
    let joined = SystemTime::now().duration_since(frontend.joined_at);
    let mut row = vec![
        Cell::left(frontend.slot.to_string()),
        Cell::right(frontend.pid.to_string()),
        alive,
        Cell::right(frontend.in_flight.to_string()).style(BOLD),
        Cell::right(short(frontend.tokens)),
        Cell::right(format!("{} ago", age(joined.unwrap_or_default()))),
    ];
    if has_queue {
        row.insert(WAITING_AT, Cell::right(frontend.waiting.to_string()));
    }
    row
}
