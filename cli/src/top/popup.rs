//! Windows over the picture: help, a question, and the result of the change.

use super::app::Change;
use crate::text_table::{cut, wrap};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

const HELP: [&str; 11] = [
    "up, down, k, j   choose an engine",
    "PgUp, PgDn       ten at once",
    "Home, End        the first, the last",
    "s   sort by number, name, in flight, rate",
    "d   drain the chosen engine (asks)",
    "u   undrain it (asks)",
    "p   pause, and go on",
    "?   this",
    "q   quit",
    "",
    "IN/s, OUT/s: requests given and finished",
];

/// Draws the help. Its end is left out if there is no room for all of it.
pub(crate) fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<_> = HELP.into_iter().map(str::to_owned).collect();
    let width = |area: Rect| usize::from(area.width);
    if usize::from(area.height) >= lines.len() + 2 && width(area) > 45 {
        boxed(frame, area, "Help: any key closes it", lines, 48)
    } else {
        let wrapped = lines.iter().flat_map(|line| wrap(line, width(area)));
        plain(frame, area, wrapped.collect(), Style::new());
    }
}

/// Draws the question in the longest form that there is room for. Each form has the change, the engine, and the keys
/// that answer. Returns false if there is no room even for the shortest: then nothing is asked.
pub(crate) fn question(frame: &mut Frame<'_>, area: Rect, change: Change, engine: &str) -> bool {
    const KEYS: &str = "y yes, any other key no";
    const SHORT: &str = "y/n";
    /// In less, words are torn apart.
    const NARROWEST: usize = 12;
    const WIDEST: u16 = 64;
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let verb = change.verb();
    let asked = format!("{verb} {engine}?");
    let explained = format!("{asked} {}", change.explanation());
    let within = usize::from(area.width.min(WIDEST)).saturating_sub(2);
    for (question, keys) in [(&explained, KEYS), (&asked, KEYS), (&asked, SHORT)] {
        let lines = [wrap(question, within), wrap(keys, within)].concat();
        if within >= NARROWEST && lines.len() + 2 <= height {
            boxed(frame, area, "Sure?", lines, WIDEST);
            return true;
        }
    }
    let style = Style::new().add_modifier(Modifier::REVERSED);
    for keys in [KEYS, SHORT] {
        let lines = [wrap(&asked, width), wrap(keys, width)].concat();
        if width >= NARROWEST && lines.len() <= height {
            plain(frame, area, lines, style);
            return true;
        }
    }
    // Enough of a name to tell it from other names.
    let enough = engine.width().min(5);
    let rest = verb.len() + " ? ".len() + SHORT.len();
    if height >= 1 && width >= rest + enough {
        let name = cut(engine, width - rest);
        plain(frame, area, vec![format!("{verb} {name}? {SHORT}")], style);
        return true;
    }
    if height >= 3 && width >= verb.len().max(enough) {
        let lines = vec![verb.to_owned(), cut(engine, width), SHORT.to_owned()];
        plain(frame, area, lines, style);
        return true;
    }
    false
}

/// Draws a sentence in the last lines, in half of the screen at most.
pub(crate) fn sentence(frame: &mut Frame<'_>, area: Rect, text: &str) {
    let mut lines = wrap(text, area.width.into());
    lines.truncate(usize::from(area.height / 2).max(1));
    let style = Style::new().add_modifier(Modifier::REVERSED);
    let height = u16::try_from(lines.len()).unwrap_or(area.height);
    let y = area.height.saturating_sub(height);
    let bottom = Rect { y, height, ..area };
    plain(frame, bottom, lines, style);
}

/// Draws a box in the middle.
fn boxed(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<String>, width: u16) {
    let width = width.min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let height = height.min(area.height);
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered().title(title.to_owned());
    let lines: Vec<_> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Draws lines without a box, from the top.
fn plain(frame: &mut Frame<'_>, area: Rect, lines: Vec<String>, style: Style) {
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let area = Rect {
        height: height.min(area.height),
        ..area
    };
    let lines: Vec<_> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).style(style), area);
}
