//! Text in columns, within the width of the terminal.

use anstyle::Style;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    right: bool,
}

impl Cell {
    pub(crate) fn left(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            style: Style::new(),
            right: false,
        }
    }

    pub(crate) fn right(text: impl Into<String>) -> Self {
        Self {
            right: true,
            ..Self::left(text)
        }
    }

    pub(crate) fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

/// The least width of the first column.
const NARROWEST: usize = 6;

/// Returns how wide each column is, if none is cut.
fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n));
        cells.map(|cell| cell.text.width()).max().unwrap_or(0)
    };
    (0..columns).map(widest).collect()
}

/// Returns the width of all columns, with a space between each two.
fn with_gaps(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.len().saturating_sub(1)
}

/// Returns the width below which rows cannot be aligned.
pub(crate) fn narrowest(rows: &[Vec<Cell>]) -> usize {
    let mut widths = widths(rows);
    if let Some(first) = widths.first_mut() {
        *first = (*first).min(NARROWEST);
    }
    with_gaps(&widths)
}

/// Aligns rows within `width`, by cutting the first column. All rows have the same number of cells.
pub(crate) fn align(rows: &[Vec<Cell>], width: usize) -> String {
    let mut widths = widths(rows);
    let all = with_gaps(&widths);
    if let Some(first) = widths.first_mut() {
        *first = first
            .saturating_sub(all.saturating_sub(width))
            .max((*first).min(NARROWEST));
    }
    let mut out = String::new();
    for row in rows {
        for (n, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let text = cut(&cell.text, *width);
            let padding = " ".repeat(width - text.width());
            let style = cell.style;
            let gap = if n == 0 { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = if cell.right {
                write!(out, "{gap}{padding}{style}{text}{style:#}")
            } else {
                write!(out, "{gap}{style}{text}{style:#}{padding}")
            };
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// Cuts the beginning of a text to fit a width: names differ at their ends.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let mut kept: Vec<char> = Vec::new();
    for c in text.chars().rev() {
        let wide = c.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        kept.push(c);
    }
    let end: String = kept.into_iter().rev().collect();
    if width == 0 { end } else { format!("…{end}") }
}

/// Cuts the end of a text to fit a width.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    let beginning: String = text.chars().take_while(fits).collect();
    if width == 0 {
        beginning
    } else {
        format!("{beginning}…")
    }
}

/// Breaks a text into lines of at most `width`: between words, and within words that are wider.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ').width();
        if used > 0 && used + bare > width {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width {
                // A space at the end of a line shows nothing.
                if c == ' ' {
                    continue;
                }
                lines.push(String::new());
                used = 0;
            }
            used += wide;
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_column_is_cut_and_keeps_its_end() {
        let row = |name: &str, n: &str| vec![Cell::left(name), Cell::right(n)];
        let rows = [row("NAME", "COUNT"), row("http://10.0.0.7:8000", "17")];
        assert_eq!(align(&rows, 16), "NAME       COUNT\n….0.7:8000    17\n");
        let whole = "NAME                 COUNT\nhttp://10.0.0.7:8000    17\n";
        assert_eq!(align(&rows, 80), whole);
    }

    #[test]
    fn lines_are_broken_between_words_and_within_wide_ones() {
        let text = "Drain http://10.0.0.7:8000? It finishes.";
        let lines = ["Drain ", "http://10.0.", "0.7:8000? It", "finishes."];
        assert_eq!(wrap(text, 12), lines);
        assert_eq!(wrap(text, 100), [text]);
        assert_eq!(wrap("", 5), [""]);
        for width in 1..50 {
            let lines = wrap(text, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
            let all = |text: &str| text.replace(' ', "");
            assert_eq!(all(&lines.concat()), all(text));
        }
    }

    #[test]
    fn a_text_that_is_cut_fills_its_width() {
        assert_eq!(cut("abcdef", 4), "…def");
        assert_eq!(cut("日本語", 4), "…語");
        assert_eq!(cut_end("abcdef", 4), "abc…");
        assert_eq!(cut_end("日本語", 4), "日…");
        assert_eq!(cut_end("日本語", 6), "日本語");
        for width in 0..8 {
            assert!(cut("日本語 abc", width).width() <= width);
            assert!(cut_end("日本語 abc", width).width() <= width);
        }
    }
}
