//! The picture at any size: the least important parts are left out where there is no room.

use super::app::{App, Popup};
use super::engine_lines::Columns;
use super::popup;
use crate::format::{age, load, rate, short};
use crate::observed::reason_name;
use crate::output::printable;
use crate::queue::{who_waited, who_waits};
use crate::text_table::{cut, cut_end};
use headcount::{FrontendView, QueueView};
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use std::time::SystemTime;

const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// How many lines each part has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Parts {
    title: usize,
    summary: usize,
    queue: usize,
    warnings: usize,
    heads: usize,
    engines: usize,
    frontends: usize,
    keys: usize,
}

impl Parts {
    /// Distributes the lines of a screen, to the most important part first.
    fn of(height: usize, queue: bool, warnings: usize, engines: usize, frontends: usize) -> Self {
        let mut left = height;
        let mut take = |wanted: usize, if_left: usize| {
            let taken = if left >= if_left { wanted.min(left) } else { 0 };
            left -= taken;
            taken
        };
        let mut parts = Self {
            engines: take(1, 1),
            title: take(1, 1),
            heads: take(1, 2),
            keys: take(1, 2),
            summary: take(1, 3),
            queue: take(usize::from(queue), 3),
            warnings: take(usize::from(warnings > 0), 3),
            ..Self::default()
        };
        // Engines have two thirds of the rest, or what the frontends leave them.
        let frontends = if frontends > 0 { frontends + 2 } else { 0 };
        let engines = engines.saturating_sub(1);
        let for_frontends = frontends.min((left / 3).max(left.saturating_sub(engines)));
        let for_frontends = if for_frontends < 3 { 0 } else { for_frontends };
        parts.engines += engines.min(left - for_frontends);
        left -= engines.min(left - for_frontends);
        parts.frontends = for_frontends;
        left -= for_frontends;
        parts.warnings += left.min(warnings.saturating_sub(parts.warnings));
        parts
    }
}

pub(crate) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let view = &app.observed().view;
    let parts = Parts::of(
        height,
        view.queue.is_some(),
        app.observed().warnings.len(),
        view.engines.len(),
        view.frontends.len(),
    );
    scroll(app, parts.engines);
    let mut lines = Vec::new();
    if parts.title > 0 {
        lines.push(title(app, width));
    }
    if parts.summary > 0 {
        lines.push(summary(app, width));
    }
    if parts.queue > 0 {
        let queue = app.observed().view.queue.as_ref();
        lines.extend(queue.map(|queue| queue_line(queue, width)));
    }
    lines.extend(warnings(app, parts.warnings, width));
    let columns = Columns::within(width, app.observed());
    if parts.heads > 0 {
        lines.push(columns.heads());
    }
    let (engines, chosen) = (app.engines(), app.chosen());
    let shown = engines
        .iter()
        .enumerate()
        .skip(app.scroll)
        .take(parts.engines);
    lines.extend(shown.map(|(n, engine)| {
        columns.engine(app.observed(), app.history(), engine, chosen == Some(n))
    }));
    if parts.frontends > 0 {
        lines.push(Line::default());
        lines.extend(frontends(app, parts.frontends - 1, width));
    }
    // The keys lie at the very bottom.
    lines.resize(height - parts.keys, Line::default());
    if parts.keys > 0 {
        lines.push(keys(app, width));
    }
    // Old figures do not look like live ones.
    let style = if app.is_lost() { FAINT } else { Style::new() };
    frame.render_widget(Paragraph::new(lines).style(style), area);
    if let Some(Popup::Asking { engine, change }) = &app.popup
        && !popup::question(frame, area, *change, &printable(engine))
    {
        app.popup = None;
        app.say("the screen is too small for the question".to_owned());
    }
    if app.popup == Some(Popup::Help) {
        popup::help(frame, area);
    }
    if let (Some(message), None) = (&app.message, &app.popup) {
        popup::sentence(frame, area, &printable(message));
    }
}

/// Keeps the chosen engine among those that are shown.
fn scroll(app: &mut App, shown: usize) {
    let at = app.chosen().unwrap_or(0);
    let last = app.engines().len().saturating_sub(shown);
    let least = (at + 1).saturating_sub(shown);
    app.scroll = app
        .scroll
        .clamp(least.min(at), at.max(least))
        .min(last.max(least));
}

fn title(app: &App, width: usize) -> Line<'static> {
    let observed = app.observed();
    let in_flight = format!(" {} in flight", observed.in_flight());
    let cap = observed.view.max_in_flight;
    let cap = cap.map_or(String::new(), |cap| format!(" of {cap}"));
    let (lost, paused) = match (app.is_lost(), app.is_paused()) {
        (true, _) => (" NOT LIVE", ""),
        (false, true) => ("", " PAUSED"),
        (false, false) => ("", ""),
    };
    let path = printable(&observed.path.display().to_string());
    let rest = in_flight.len() + lost.len() + paused.len();
    let cap = if rest + cap.len() + 8 <= width {
        cap
    } else {
        String::new()
    };
    let rest = rest + cap.len();
    Line::from(vec![
        Span::styled(cut(&path, width.saturating_sub(rest)), BOLD),
        Span::styled(in_flight, BOLD),
        Span::raw(cap),
        Span::styled(lost, BAD.add_modifier(Modifier::REVERSED)),
        Span::styled(
            paused,
            Style::new()
                .fg(Color::Yellow)
                .add_modifier(Modifier::REVERSED),
        ),
    ])
}

/// The spread, the rates of the whole table, and the age of the snapshot.
fn summary(app: &App, width: usize) -> Line<'static> {
    let (observed, history) = (app.observed(), app.history());
    let of_load = |spread: Option<f64>| spread.map_or("-".to_owned(), load);
    let rates = observed
        .view
        .engines
        .iter()
        .filter_map(|e| history.rates(&e.name));
    let (admitted, finished) = rates.fold((0.0, 0.0), |(admitted, finished), rates| {
        (admitted + rates.admitted, finished + rates.finished)
    });
    let snapshot = match &observed.view.snapshot {
        Some(snapshot) => format!("snapshot {} old", age(snapshot.age)),
        None => "no snapshot".to_owned(),
    };
    let mut line = format!(
        "spread {} (minute {})",
        of_load(observed.spread()),
        of_load(history.widest_spread())
    );
    let mut parts = vec![
        format!("{}/s in", rate(admitted)),
        format!("{}/s out", rate(finished)),
        snapshot,
    ];
    if let Some((refused, reason)) = history.refused() {
        parts.insert(0, format!("{}/s refused", rate(refused)));
        parts.insert(3, format!("refused for {}", reason_name(reason)));
    }
    let deployment = observed.view.deployment;
    parts.extend(deployment.map(|pid| format!("deployment pid {pid}")));
    for part in parts {
        if line.len() + part.len() + 2 <= width {
            line += &format!(", {part}");
        }
    }
    Line::from(line)
}

/// Who waits, and how long requests have waited.
fn queue_line(queue: &QueueView, width: usize) -> Line<'static> {
    let mut line = who_waits(queue);
    if let Some(waited) = who_waited(queue) {
        line += &format!("; {waited}");
    }
    Line::from(cut_end(&line, width))
}

/// The worst warnings.
fn warnings(app: &App, lines: usize, width: usize) -> Vec<Line<'static>> {
    let all = &app.observed().warnings;
    let show = |n: usize| {
        let warning = &all[n];
        let more = if n + 1 == lines && all.len() > lines {
            format!(" (and {} more)", all.len() - lines)
        } else {
            String::new()
        };
        let style = if warning.is_serious() {
            BAD
        } else {
            Style::new().fg(Color::Yellow)
        };
        let text = cut_end(&format!("! {warning}"), width.saturating_sub(more.len()));
        Line::styled(cut_end(&(text + &more), width), style)
    };
    (0..lines.min(all.len())).map(show).collect()
}

fn frontends(app: &App, lines: usize, width: usize) -> Vec<Line<'static>> {
    let all = &app.observed().view.frontends;
    let has_queue = app.observed().view.queue.is_some();
    // A column that is there if the table has a queue.
    let waiting = |figure: &str| match has_queue {
        true => format!(" {figure:>5}"),
        false => String::new(),
    };
    let head = format!(
        "{:8} {:>8} {:5} {:>6} {:>6}{}  {}",
        "FRONTEND",
        "PID",
        "ALIVE",
        "IN-FL",
        "TOKENS",
        waiting("WAIT"),
        "JOINED"
    );
    let mut shown = vec![Line::styled(head, FAINT)];
    // The dead first: an operator looks for them.
    let mut sorted: Vec<&FrontendView> = all.iter().collect();
    sorted.sort_by_key(|frontend| frontend.alive);
    let room = lines.saturating_sub(1);
    let fit = if sorted.len() > room {
        room.saturating_sub(1)
    } else {
        room
    };
    for frontend in sorted.iter().take(fit) {
        let joined = SystemTime::now()
            .duration_since(frontend.joined_at)
            .unwrap_or_default();
        let text = format!(
            "{:<8} {:>8} {:5} {:>6} {:>6}{}  {} ago",
            frontend.slot,
            frontend.pid,
            if frontend.alive { "yes" } else { "DEAD" },
            frontend.in_flight,
            short(frontend.tokens),
            waiting(&short(frontend.waiting)),
            age(joined)
        );
        let style = if frontend.alive { Style::new() } else { BAD };
        shown.push(Line::styled(cut_end(&text, width), style));
    }
    if sorted.len() > fit {
        shown.push(Line::styled(
            format!("and {} more", sorted.len() - fit),
            FAINT,
        ));
    }
    shown
}

/// The line about the keys.
fn keys(app: &App, width: usize) -> Line<'static> {
    let sort = app.order.name();
    let long =
        format!("q quit  ? help  p pause  s sort: {sort}  d drain  u undrain  arrows choose");
    let short = format!("q quit  ? help  s sort: {sort}");
    let text = [long, short].into_iter().find(|text| text.len() <= width);
    Line::styled(text.unwrap_or("q ?".to_owned()), FAINT)
}

#[cfg(test)]
mod tests;
