//! Caps as they are typed and said.

use crate::figures::count;
use clap::Args;
use headcount::Options;
use std::str::FromStr;

/// A cap as it is typed: a number, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cap(pub(crate) Option<u32>);

impl FromStr for Cap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            number => {
                let cap = number.parse().ok().filter(|cap| *cap > 0);
                cap.map(|cap| Self(Some(cap))).ok_or_else(|| {
                    format!(
                        "the cap {number:?} cannot be; give a number from 1 to {}, or none",
                        u32::MAX
                    )
                })
            }
        }
    }
}

/// The caps of the whole table.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TotalCaps {
    /// The most requests in flight on all engines together.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_in_flight_total: Option<Cap>,
    /// The most tokens in flight on all engines together.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_tokens_total: Option<Cap>,
}

impl TotalCaps {
    pub(crate) fn requests(self) -> Option<u32> {
        self.max_in_flight_total.and_then(|cap| cap.0)
    }

    pub(crate) fn tokens(self) -> Option<u32> {
        self.max_tokens_total.and_then(|cap| cap.0)
    }

    /// Whether one of them was typed.
    pub(crate) fn are_given(self) -> bool {
        self.max_in_flight_total.is_some() || self.max_tokens_total.is_some()
    }

    /// The cap on requests, if one was typed: `Some(None)` for `none`.
    pub(crate) fn requests_if_given(self) -> Option<Option<u32>> {
        self.max_in_flight_total.map(|cap| cap.0)
    }

    /// The cap on tokens, if one was typed.
    pub(crate) fn tokens_if_given(self) -> Option<Option<u32>> {
        self.max_tokens_total.map(|cap| cap.0)
    }

    /// Options with these caps. One that is none is not set.
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

/// Says both caps of an engine or of a table.
pub(crate) fn said(requests: Option<u32>, tokens: Option<u32>) -> String {
    let say = |cap: Option<u32>, what| match cap {
        Some(cap) => format!("at most {}", count(cap.into(), what)),
        None => format!("no cap on {what}s"),
    };
    match (requests, tokens) {
        (None, None) => "no caps".to_owned(),
        _ => format!("{}, {}", say(requests, "request"), say(tokens, "token")),
    }
}
