//! Engines as lines of a given width: the least important columns are left out where there is no room.

use super::history::{History, Rates};
use crate::format::{bar, rate, short, sparkline, weight};
use crate::observed::{Observed, is_full, state};
use crate::output::printable;
use crate::text_table::cut;
use headcount::{EngineState, EngineView};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

/// A column, in the order in which they are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Name,
    State,
    InFlight,
    Bar,
    Minute,
    Admitted,
    Finished,
    Waiting,
    Running,
    KvUsage,
    Tokens,
    TokenCap,
    Weight,
    Cap,
}

use Column::{
    Admitted, Bar, Cap, Finished, InFlight, KvUsage, Minute, Name, Running, State, TokenCap,
    Tokens, Waiting, Weight,
};

const SHOWN: [Column; 14] = [
    Name, State, InFlight, Bar, Minute, Admitted, Finished, Weight, Waiting, Running, KvUsage,
    Tokens, TokenCap, Cap,
];

/// The columns, the most important first. Weights and caps on tokens are there only if an engine has them; then they
/// explain why an engine gets more than another.
fn important(observed: &Observed) -> Vec<Column> {
    let mut important = vec![Name, InFlight, Bar, Minute, State];
    if observed.has_weights() {
        important.push(Weight);
    }
    if observed.has_token_caps() {
        important.extend([Tokens, TokenCap]);
    }
    important.extend([Admitted, Finished, Waiting, Running, KvUsage]);
    if !observed.has_token_caps() {
        important.push(Tokens);
    }
    important.push(Cap);
    important
}

impl Column {
    fn head(self, width: usize) -> &'static str {
        match self {
            Name => "ENGINE",
            State => "STATE",
            InFlight => "IN-FL",
            Bar => "LOAD",
            Minute if width >= 11 => "LAST MINUTE",
            Minute => "MINUTE",
            Admitted => "IN/s",
            Finished => "OUT/s",
            Waiting => "WAIT",
            Running => "RUN",
            KvUsage => "KV",
            Tokens => "TOKENS",
            TokenCap => "TOK-CAP",
            Weight => "WEIGHT",
            Cap => "CAP",
        }
    }

    fn narrowest(self) -> usize {
        match self {
            Name | Tokens | Weight => 6,
            TokenCap => 7,
            State | Minute => 8,
            InFlight | Admitted | Finished | Waiting | Running | Bar | Cap => 5,
            KvUsage => 4,
        }
    }

    fn is_left(self) -> bool {
        matches!(self, Name | State | Bar | Minute)
    }
}

/// The columns that there is room for, and how wide each is.
#[derive(Clone, Debug)]
pub(crate) struct Columns(Vec<(Column, usize)>);

impl Columns {
    /// For lines of `width`; names, bars and the minute share what is left over.
    pub(crate) fn within(width: usize, observed: &Observed) -> Self {
        let mut kept = vec![];
        let mut left = width;
        for column in important(observed) {
            let takes = column.narrowest() + usize::from(!kept.is_empty());
            // The last two columns come only if the name and the minute have enough room.
            let spare = if matches!(column, Tokens | Cap) {
                16
            } else {
                0
            };
            if takes + spare <= left || kept.is_empty() {
                left = left.saturating_sub(takes);
                kept.push(column);
            } else {
                break;
            }
        }
        let longest = (observed.view.engines.iter())
            .map(|engine| printable(&engine.name).width())
            .max();
        let mut columns: Vec<_> = SHOWN
            .into_iter()
            .filter(|column| kept.contains(column))
            .map(|column| (column, column.narrowest().min(width)))
            .collect();
        let mut grow = |what: Column, most: usize| {
            if let Some((_, width)) = columns.iter_mut().find(|(column, _)| *column == what) {
                let more = most.saturating_sub(*width).min(left);
                *width += more;
                left -= more;
            }
        };
        grow(Name, longest.unwrap_or(0).min(14));
        grow(Minute, 12);
        grow(Name, longest.unwrap_or(0).min(24));
        grow(Bar, 8);
        grow(Minute, 20);
        grow(Name, longest.unwrap_or(0));
        grow(Bar, 20);
        grow(Minute, 60);
        Self(columns)
    }

    pub(crate) fn heads(&self) -> Line<'static> {
        let style = Style::new().add_modifier(Modifier::DIM);
        self.line(style, |column| {
            let head = column.head(self.width_of(column));
            (head.to_owned(), Style::new())
        })
    }

    pub(crate) fn engine(
        &self,
        observed: &Observed,
        history: &History,
        engine: &EngineView,
        is_chosen: bool,
    ) -> Line<'static> {
        let rates = history.rates(&engine.name);
        let each = |of: fn(Rates) -> f64| rates.map_or("-".to_owned(), |rates| rate(of(rates)));
        let stat =
            |of: fn(headcount::EngineStats) -> String| engine.stats.map_or("-".to_owned(), of);
        let cap = |cap: Option<u32>| cap.map_or("-".to_owned(), |cap| short(cap.into()));
        let plain = Style::new();
        let name = if is_chosen {
            plain.add_modifier(Modifier::REVERSED)
        } else {
            plain
        };
        self.line(plain, |column| match column {
            Name => (printable(&engine.name), name),
            State => (state(engine).to_owned(), style_of(engine)),
            InFlight => (
                engine.in_flight.to_string(),
                plain.add_modifier(Modifier::BOLD),
            ),
            Bar => (
                bar(observed.fullness(engine), self.width_of(Bar)),
                style_of(engine),
            ),
            Minute => {
                let minute = history.minute(&engine.name, self.width_of(Minute));
                let most = minute.iter().flatten().copied().fold(0.0, f64::max);
                (sparkline(&minute, most), plain.fg(Color::Cyan))
            }
            Admitted => (each(|rates| rates.admitted), plain),
            Finished => (each(|rates| rates.finished), plain),
            Waiting => (stat(|stats| short(stats.waiting.into())), plain),
            Running => (stat(|stats| short(stats.running.into())), plain),
            KvUsage => (
                stat(|stats| format!("{:.0}%", stats.kv_usage * 100.0)),
                plain,
            ),
            Tokens => (short(engine.tokens.into()), plain),
            TokenCap => (cap(engine.max_tokens), plain),
            Weight => (weight(engine.weight), plain),
            Cap => (cap(engine.max_in_flight), plain),
        })
    }

    fn width_of(&self, what: Column) -> usize {
        let found = self.0.iter().find(|(column, _)| *column == what);
        found.map_or(0, |(_, width)| *width)
    }

    fn line(&self, style: Style, cell: impl Fn(Column) -> (String, Style)) -> Line<'static> {
        let mut spans = Vec::new();
        for (n, (column, width)) in self.0.iter().enumerate() {
            let (text, style) = cell(*column);
            let text = cut(&text, *width);
            let padding = " ".repeat(width.saturating_sub(text.width()));
            if n > 0 {
                spans.push(Span::raw(" "));
            }
            let (before, after) = if column.is_left() {
                (String::new(), padding)
            } else {
                (padding, String::new())
            };
            spans.push(Span::raw(before));
            spans.push(Span::styled(text, style));
            spans.push(Span::raw(after));
        }
        Line::from(spans).style(style)
    }
}

/// Returns the style of an engine's state.
fn style_of(engine: &EngineView) -> Style {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match engine.state {
        _ if is_full(engine) => bold.fg(Color::Red),
        EngineState::Active => Style::new().fg(Color::Green),
        EngineState::Down => bold.fg(Color::Red),
        _ => Style::new().fg(Color::Yellow),
    }
}
