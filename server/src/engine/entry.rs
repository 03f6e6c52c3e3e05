//! An engine as operators write it: `http://HOST:PORT [weight=W] [max_in_flight=N] [max_tokens=N]`.

use crate::engine::address::{Address, SEVERAL, shown};
use std::str::FromStr;

/// The largest caps of an engine. In the table, the next number stands for no cap.
pub(crate) const MOST_IN_FLIGHT: u32 = headcount::MAX_IN_FLIGHT - 1;
pub(crate) const MOST_TOKENS: u32 = u32::MAX - 1;

/// An engine of the list: `http://HOST:PORT [weight=W] [max_in_flight=N] [max_tokens=N]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct EngineEntry {
    /// The address, which is the engine's name in the table.
    pub(crate) name: String,
    address: Address,
    pub(crate) weight: f32,
    pub(crate) max_in_flight: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
}

impl EngineEntry {
    /// Returns an engine of weight 1 without caps.
    pub(crate) fn at(address: Address) -> Self {
        Self {
            name: address.to_string(),
            address,
            weight: 1.0,
            max_in_flight: None,
            max_tokens: None,
        }
    }

    /// Whether both entries name the same host and port.
    pub(crate) fn is_same_engine(&self, other: &Self) -> bool {
        let (a, b) = (&self.address, &other.address);
        a.port == b.port && a.host.identity() == b.host.identity()
    }
}

impl FromStr for EngineEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let address = words.next().unwrap_or_default();
        let mut entry = Self::at(address.parse()?);
        let mut weight = None;
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let is_twice = match key {
                "weight" => weight.replace(read_weight(word, value)?).is_some(),
                "max_in_flight" => {
                    let cap = read_cap(word, value, MOST_IN_FLIGHT)?;
                    entry.max_in_flight.replace(cap).is_some()
                }
                "max_tokens" => {
                    let cap = read_cap(word, value, MOST_TOKENS)?;
                    entry.max_tokens.replace(cap).is_some()
                }
                _ => return Err(unknown(word)),
            };
            if is_twice {
                return Err(format!("{key} is given twice; give it once"));
            }
        }
        entry.weight = weight.unwrap_or(entry.weight);
        Ok(entry)
    }
}

fn read_weight(word: &str, value: &str) -> Result<f32, String> {
    let is_weight = |weight: &f32| weight.is_normal() && *weight > 0.0;
    let weight = value.parse().ok().filter(is_weight);
    let [least, most] = [f32::MIN_POSITIVE, f32::MAX];
    weight.ok_or_else(|| {
        let shown = shown(word);
        format!("{shown} is not a weight; give a number from {least:.1e} to {most:.1e}")
    })
}

fn read_cap(word: &str, value: &str, most: u32) -> Result<u32, String> {
    let cap = value.parse().ok().filter(|cap| (1..=most).contains(cap));
    let shown = shown(word);
    cap.ok_or_else(|| format!("{shown} is not a cap; give a number from 1 to {most}"))
}

fn unknown(word: &str) -> String {
    if word.parse::<Address>().is_ok() {
        return format!("a second address, {}: this {SEVERAL}", shown(word));
    }
    format!(
        "{} is not known; after the address come weight=, max_in_flight= and max_tokens=",
        shown(word)
    )
}
