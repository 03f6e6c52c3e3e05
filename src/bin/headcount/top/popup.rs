//! What lies over the picture: help, and a question.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

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

pub(crate) fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<_> = HELP.into_iter().map(Line::from).collect();
    show(frame, area, "Help: any key closes it", lines, 44);
}

pub(crate) fn question(frame: &mut Frame<'_>, area: Rect, question: &str) {
    let lines = vec![
        Line::from(question.to_owned()),
        "y yes, any other key no".into(),
    ];
    show(frame, area, "Sure?", lines, 60);
}

/// A box in the middle, as large as there is room for.
fn show(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, width: u16) {
    let width = (width + 4).min(area.width);
    let inner = usize::from(width.saturating_sub(2).max(1));
    // A line that is broken between words may take one more than its length says.
    let wrapped: usize = lines
        .iter()
        .map(|line| match line.width().div_ceil(inner) {
            0 | 1 => 1,
            broken => broken + 1,
        })
        .sum();
    let paragraph = Paragraph::new(lines).wrap(Wrap { trim: false });
    let height = u16::try_from(wrapped + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered().title(title.to_owned());
    frame.render_widget(Clear, area);
    frame.render_widget(paragraph.block(block), area);
}
