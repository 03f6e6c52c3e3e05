//! An engine as users see it: its name, weight, caps and state.

use crate::algorithm::word::{MAX_REQUESTS, MAX_TOKENS, RowState, Word};
use crate::error::{Error, Result};
use crate::shm::layout::MAX_NAME;
use std::fmt;

/// An engine to be put into a table.
///
/// ```
/// use headcount::Engine;
/// let engine = Engine::named("http://10.0.0.7:8000").weight(2.0).max_in_flight(256);
/// ```
#[must_use = "an engine is put into a table by `Options::engine` or `Table::add`"]
#[derive(Clone, PartialEq)]
pub struct Engine {
    pub(crate) name: String,
    pub(crate) weight: f32,
    pub(crate) max_in_flight: u32,
    pub(crate) max_tokens: u32,
}

/// Leaves out the caps that it does not have.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = f.debug_struct("Engine");
        said.field("name", &self.name).field("weight", &self.weight);
        if let Some(cap) = self.get_max_in_flight() {
            said.field("max_in_flight", &cap);
        }
        if let Some(cap) = self.get_max_tokens() {
            said.field("max_tokens", &cap);
        }
        said.finish()
    }
}

impl Engine {
    /// Returns an engine of weight 1 without caps. The name is 1 to 232 bytes
    /// ([`MAX_NAME_LEN`](crate::MAX_NAME_LEN)) of text without control characters and others that cannot be
    /// seen, and the only one of its kind in the table; an address, say. A name of the form `@3` is refused, for
    /// the command takes it for a number.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            weight: 1.0,
            max_in_flight: MAX_REQUESTS,
            max_tokens: MAX_TOKENS,
        }
    }

    /// Sets its capacity, compared with the other engines: a finite number above 0, and not a subnormal one.
    ///
    /// A request goes to the engine of the least `(in_flight + 1) / weight`: what the engine would have
    /// with it, for what it can do. So single requests, of which each finishes before the next one comes,
    /// all go to the engine of the greatest weight. Of two to five requests in flight, engines of weight 4
    /// and 1 have 2 and 0, 3 and 0, 4 and 0 or 3 and 1, 4 and 1. Bursts split in proportion to the weights.
    /// Among engines of equal weight, whatever it is, the one with the fewest in flight is chosen.
    ///
    /// [`Policy`](crate::Policy) says how each policy uses weights.
    pub fn weight(mut self, weight: f32) -> Self {
        self.weight = weight;
        self
    }

    /// Sets the most requests in flight on it, from all frontends together. No engine takes more than
    /// 1,048,575 ([`MAX_IN_FLIGHT`](crate::MAX_IN_FLIGHT)). An engine of cap 0 takes nothing.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.max_in_flight = requests.min(MAX_REQUESTS);
        self
    }

    /// Sets the most tokens in flight on it, from all frontends together. No engine takes more than 2^32 - 1.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its weight.
    pub fn get_weight(&self) -> f32 {
        self.weight
    }

    /// Returns its cap in requests. `None`: no cap.
    pub fn get_max_in_flight(&self) -> Option<u32> {
        Some(self.max_in_flight).filter(|cap| *cap < MAX_REQUESTS)
    }

    /// Returns its cap in tokens. `None`: no cap.
    pub fn get_max_tokens(&self) -> Option<u32> {
        Some(self.max_tokens).filter(|cap| *cap < MAX_TOKENS)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let reason = match self.name.len() {
            0 => Some("is empty"),
            length if length > MAX_NAME => Some("is too long"),
            _ if self.name.chars().any(char::is_control) => Some("has control characters"),
            _ if self.name.chars().any(is_invisible) => Some("has characters that cannot be seen"),
            _ if is_number(&self.name) => Some("is the form of an engine's number"),
            _ => None,
        };
        if let Some(reason) = reason {
            return Err(Error::EngineName {
                name: self.name.clone(),
                reason,
            });
        }
        check_weight(self.weight)
    }
}

/// A clone.
impl From<&Engine> for Engine {
    fn from(engine: &Engine) -> Self {
        engine.clone()
    }
}

/// An engine of that name, of weight 1 and without caps: [`Engine::named`].
impl From<&str> for Engine {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

/// An engine of that name, of weight 1 and without caps: [`Engine::named`].
impl From<String> for Engine {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}

/// Characters that have no width or turn the text around, so that two names look like one.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `@3`, say: by that the command knows engine number 3.
fn is_number(name: &str) -> bool {
    let digits = name.strip_prefix('@');
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn check_weight(weight: f32) -> Result<()> {
    // Subnormal weights would make loads infinite.
    if weight.is_normal() && weight > 0.0 {
        return Ok(());
    }
    Err(Error::Weight { found: weight })
}

/// The state of an engine in a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EngineState {
    /// Takes requests.
    Active,
    /// Takes no new requests; those in flight finish.
    Draining,
    /// Does not answer; takes nothing.
    Down,
    /// Removed from the table while requests were in flight. Its slot is free once they finish; if
    /// it is added again under its name before that, it starts from those.
    Leaving,
}

impl EngineState {
    /// Its name in one word, as the command and metrics show it: `active`, `draining`, `down` or `leaving`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Down => "down",
            Self::Leaving => "leaving",
        }
    }

    /// The state in a row's word; `None` for a row that no engine has.
    pub(crate) fn of(word: Word) -> Option<Self> {
        match word.state() {
            RowState::Active => Some(Self::Active),
            RowState::Draining => Some(Self::Draining),
            RowState::Down => Some(Self::Down),
            RowState::Removed => (word.value() > 0).then_some(Self::Leaving),
        }
    }
}

/// Its [`name`](Self::name).
impl fmt::Display for EngineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
