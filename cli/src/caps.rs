//! Caps as arguments and in sentences.

use crate::format::count;
use clap::Args;
use headcount::{MAX_IN_FLIGHT, Options};
use std::str::FromStr;

/// The largest cap of an engine in requests. No engine takes more without a cap.
pub(crate) const MOST_REQUESTS: u32 = MAX_IN_FLIGHT - 1;
/// The largest cap of an engine in tokens.
pub(crate) const MOST_TOKENS: u32 = u32::MAX - 1;

/// A cap as an argument: a number up to a limit, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cap<const MOST: u32>(pub(crate) Option<u32>);

/// A cap of the table.
pub(crate) type TotalCap = Cap<{ u32::MAX }>;

impl<const MOST: u32> FromStr for Cap<MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let cap = a_number(text, MOST).map_err(|expected| {
            format!("the cap {text:?} is not valid; give {expected}, or none")
        })?;
        Ok(Self(Some(cap)))
    }
}

/// Reads a cap that is a number. The error says which numbers are valid.
pub(crate) fn a_number(text: &str, most: u32) -> Result<u32, String> {
    let cap = text.parse().ok().filter(|cap| (1..=most).contains(cap));
    cap.ok_or_else(|| format!("a number from 1 to {most}"))
}

/// The caps of the whole table.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TotalCaps {
    /// The most requests in flight on all engines together.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_in_flight_total: Option<TotalCap>,
    /// The most tokens in flight on all engines together.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_tokens_total: Option<TotalCap>,
}

impl TotalCaps {
    pub(crate) fn requests(self) -> Option<u32> {
        self.max_in_flight_total.and_then(|cap| cap.0)
    }

    pub(crate) fn tokens(self) -> Option<u32> {
        self.max_tokens_total.and_then(|cap| cap.0)
    }

    /// Whether one of them is given.
    pub(crate) fn are_given(self) -> bool {
        self.max_in_flight_total.is_some() || self.max_tokens_total.is_some()
    }

    /// The cap on requests, if it is given: `Some(None)` for `none`.
    pub(crate) fn requests_if_given(self) -> Option<Option<u32>> {
        self.max_in_flight_total.map(|cap| cap.0)
    }

    /// The cap on tokens, if it is given.
    pub(crate) fn tokens_if_given(self) -> Option<Option<u32>> {
        self.max_tokens_total.map(|cap| cap.0)
    }

    /// Sets these caps in options, except those that are none.
    pub(crate) fn set_in(self, options: Options) -> Options {
        let options = match self.requests() {
            Some(requests) => options.max_in_flight(requests),
            None => options,
        };
        match self.tokens() {
            Some(tokens) => options.max_tokens(tokens),
            None => options,
        }
    }
}

/// Describes both caps of an engine or of a table.
pub(crate) fn described(requests: Option<u32>, tokens: Option<u32>) -> String {
    let say = |cap: Option<u32>, what| match cap {
        Some(cap) => format!("at most {}", count(cap.into(), what)),
        None => format!("no cap on {what}s"),
    };
    match (requests, tokens) {
        (None, None) => "no caps".to_owned(),
        _ => format!("{}, {}", say(requests, "request"), say(tokens, "token")),
    }
}
