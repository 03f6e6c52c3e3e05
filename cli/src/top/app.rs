//! The state of `top`, and how keys change it.

use super::history::History;
use crate::failure::Failure;
use crate::find::find;
use crate::format::age;
use crate::observed::Observed;
use crate::table_arg::TableArg;
use headcount::EngineView;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Instant;

/// What the loop does about a key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    Nothing,
    Quit,
    Stop,
    Change { engine: String, change: Change },
}

/// What a key does to an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Drain,
    Undrain,
}

impl Change {
    /// Makes the change, and returns a sentence with the result.
    pub(crate) fn apply(self, table_arg: &TableArg, engine: &str) -> String {
        let change = || -> Result<&'static str, Failure> {
            let table = table_arg.open()?;
            // By its name: another engine may have its number by now.
            let engine = find(&table, engine)?;
            match self {
                Self::Drain => table.drain(engine.id)?,
                Self::Undrain => table.up(engine.id)?,
            }
            Ok(self.done())
        };
        match change() {
            Ok(done) => format!("{engine} {done}"),
            Err(failure) => failure.sentence,
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Drain => "drains",
            Self::Undrain => "takes requests",
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Drain => "Drain",
            Self::Undrain => "Undrain",
        }
    }

    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Self::Drain => "It takes nothing new, and finishes what it has.",
            Self::Undrain => "It takes requests again.",
        }
    }
}

/// The order of the engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Number,
    Name,
    InFlight,
    Rate,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Self::Number => Self::Name,
            Self::Name => Self::InFlight,
            Self::InFlight => Self::Rate,
            Self::Rate => Self::Number,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Name => "name",
            Self::InFlight => "in flight",
            Self::Rate => "rate",
        }
    }
}

/// A window over the picture.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Popup {
    Help,
    Asking { engine: String, change: Change },
}

/// What is on the screen, and what a pause keeps from it.
#[derive(Debug)]
pub(crate) struct App {
    /// The table as it was read last, and the minute before.
    latest: (Observed, History),
    /// The same as of the beginning of the pause.
    paused: Option<(Observed, History)>,
    /// The name of the chosen engine.
    chosen: Option<String>,
    pub(crate) order: Order,
    pub(crate) popup: Option<Popup>,
    /// The result of the last change, or why the table cannot be read.
    pub(crate) message: Option<String>,
    /// Since when it cannot be read.
    lost: Option<Instant>,
    /// The first engine that is shown.
    pub(crate) scroll: usize,
}

impl App {
    pub(crate) fn new(observed: Observed) -> Self {
        Self {
            latest: (observed, History::default()),
            paused: None,
            chosen: None,
            order: Order::Number,
            popup: None,
            message: None,
            lost: None,
            scroll: 0,
        }
    }

    /// Takes in the table as it was just read.
    pub(crate) fn note(&mut self, at: Instant, observed: Observed) {
        if self.lost.take().is_some() {
            self.message = None;
        }
        self.latest.1.note(at, &observed);
        self.latest.0 = observed;
    }

    /// Notes that the table cannot be read any more.
    pub(crate) fn lose(&mut self, at: Instant, why: &str) {
        let since = *self.lost.get_or_insert(at);
        let ago = age(at.duration_since(since));
        self.message = Some(format!(
            "{why}; what is shown is {ago} old, and is live again when a table can be read there"
        ));
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    pub(crate) fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    pub(crate) fn observed(&self) -> &Observed {
        &self.paused.as_ref().unwrap_or(&self.latest).0
    }

    pub(crate) fn history(&self) -> &History {
        &self.paused.as_ref().unwrap_or(&self.latest).1
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns the engines in the order in which they are shown.
    pub(crate) fn engines(&self) -> Vec<&EngineView> {
        let mut engines: Vec<_> = self.observed().view.engines.iter().collect();
        let rate = |e: &EngineView| {
            let rates = self.history().rates(&e.name).unwrap_or_default();
            rates.admitted + rates.finished
        };
        match self.order {
            Order::Number => {}
            Order::Name => engines.sort_by(|a, b| a.name.cmp(&b.name)),
            Order::InFlight => engines.sort_by_key(|e| std::cmp::Reverse(e.in_flight)),
            Order::Rate => {
                let mut rated: Vec<_> = engines.into_iter().map(|e| (rate(e), e)).collect();
                rated.sort_by(|(a, _), (b, _)| b.total_cmp(a));
                engines = rated.into_iter().map(|(_, engine)| engine).collect();
            }
        }
        engines
    }

    /// Returns where in that order the chosen engine is.
    pub(crate) fn chosen(&self) -> Option<usize> {
        let engines = self.engines();
        let by_name = |name: &String| engines.iter().position(|engine| engine.name == *name);
        let first = (!engines.is_empty()).then_some(0);
        self.chosen.as_ref().and_then(by_name).or(first)
    }

    fn choose(&mut self, position: usize) {
        let engines = self.engines();
        let position = position.min(engines.len().saturating_sub(1));
        self.chosen = engines.get(position).map(|engine| engine.name.clone());
    }

    /// Returns what an event asks for.
    pub(crate) fn act(&mut self, event: &Event) -> Action {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.press(*key),
            // After any other event the loop draws anew, which is all that it needs.
            _ => Action::Nothing,
        }
    }

    fn press(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Stop,
                _ => Action::Nothing,
            };
        }
        match self.popup.take() {
            None => self.press_plainly(key.code),
            Some(Popup::Asking { engine, change }) => match key.code {
                KeyCode::Char('y' | 'Y') => Action::Change { engine, change },
                _ => Action::Nothing,
            },
            Some(Popup::Help) => Action::Nothing,
        }
    }

    fn press_plainly(&mut self, key: KeyCode) -> Action {
        if !self.is_lost() {
            self.message = None;
        }
        let at = self.chosen().unwrap_or(0);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.choose(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(at + 1),
            KeyCode::PageUp => self.choose(at.saturating_sub(10)),
            KeyCode::PageDown => self.choose(at + 10),
            KeyCode::Home => self.choose(0),
            KeyCode::End => self.choose(usize::MAX),
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('p' | ' ') => {
                self.paused = match self.paused {
                    Some(_) => None,
                    None => Some(self.latest.clone()),
                }
            }
            KeyCode::Char('?' | 'h') => self.popup = Some(Popup::Help),
            KeyCode::Char('d') => self.ask(Change::Drain),
            KeyCode::Char('u') => self.ask(Change::Undrain),
            _ => {}
        }
        Action::Nothing
    }

    fn ask(&mut self, change: Change) {
        let engine = self
            .chosen()
            .and_then(|at| Some(self.engines().get(at)?.name.clone()));
        self.popup = engine.map(|engine| Popup::Asking { engine, change });
    }
}
