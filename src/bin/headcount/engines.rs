//! Commands that change engines: drain, undrain, down, up, remove, add, cap, weight.

use crate::failure::{Failure, Outcome};
use crate::output::{print, printable};
use crate::source::{Owner, Source};
use clap::Args;
use headcount::{Engine, EngineId, EngineState, Error, Table};
use std::collections::HashMap;
use std::ffi::OsString;

/// Engines of a table.
#[derive(Args, Debug)]
pub(crate) struct OfEngines {
    /// The table (unless HEADCOUNT_TABLE names it), then engines by name, or by number as @0.
    #[arg(required = true, value_name = "PATH|ENGINE")]
    arguments: Vec<OsString>,
    #[command(flatten)]
    owner: Owner,
}

/// What is done to each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Drain,
    Down,
    Up,
    Remove,
}

impl OfEngines {
    pub(crate) fn run(self, change: Change) -> Result<Outcome, Failure> {
        let (source, names) = Source::split(&self.arguments, self.owner)?;
        if names.is_empty() {
            return Err(Failure::usage(
                "which engine? give its name, or its number as @0",
            ));
        }
        let table = source.open()?;
        // All of them are found before any is changed.
        let engines = find_all(&table, &names)?;
        let mut changed = Vec::new();
        let failed = engines.into_iter().zip(&names).find_map(|(engine, name)| {
            let done = change.apply(&table, engine);
            done.map(|()| changed.push((engine, name))).err()
        });
        let view = table.snapshot();
        let mut said = String::new();
        for (engine, name) in changed {
            // One that was removed and has nothing in flight is gone.
            let left = view.engine(engine).map_or(0, |e| e.in_flight);
            let (name, done) = (printable(name), change.done());
            said += &format!("{name}: {done}, {left} in flight\n");
        }
        print(&said)?;
        failed.map_or(Ok(Outcome::Fine), |error| Err(error.into()))
    }
}

impl Change {
    fn apply(self, table: &Table, engine: EngineId) -> Result<(), Error> {
        match self {
            Self::Drain => table.drain(engine),
            Self::Down => table.down(engine),
            Self::Up => table.up(engine),
            Self::Remove => table.remove(engine).map(drop),
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Drain => "drains",
            Self::Down => "is down",
            Self::Up => "takes requests",
            Self::Remove => "removed",
        }
    }
}

/// Add engines to a table.
#[derive(Args, Debug)]
#[command(
    override_usage = "headcount add [PATH] NAME[=WEIGHT]... [--max-in-flight N] [--max-tokens N]"
)]
pub(crate) struct Add {
    /// The table (unless HEADCOUNT_TABLE names it), then engines, each with its weight (1).
    #[arg(required = true, value_name = "PATH|NAME[=WEIGHT]")]
    arguments: Vec<OsString>,
    /// The most requests in flight on each of them [default: no cap].
    #[arg(long, value_name = "N")]
    max_in_flight: Option<u32>,
    /// The most tokens in flight on each of them [default: no cap].
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    #[command(flatten)]
    owner: Owner,
}

impl Add {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (source, names) = Source::split(&self.arguments, self.owner)?;
        if names.is_empty() {
            return Err(Failure::usage(
                "which engine? give the name it is to have, as NAME or NAME=WEIGHT",
            ));
        }
        let named: Vec<_> = names
            .iter()
            .map(|text| named_weight(text))
            .collect::<Result<_, _>>()
            .map_err(Failure::usage)?;
        let table = source.open()?;
        for NamedWeight { name, weight } in named {
            let mut engine = Engine::named(&name).weight(weight.unwrap_or(1.0));
            if let Some(requests) = self.max_in_flight {
                engine = engine.max_in_flight(requests);
            }
            if let Some(tokens) = self.max_tokens {
                engine = engine.max_tokens(tokens);
            }
            let id = table.add(&engine)?;
            print(&format!("{}: added as {id}\n", printable(&name)))?;
        }
        Ok(Outcome::Fine)
    }
}

/// Change an engine's caps.
///
/// A cap below what is in flight takes nothing away: the engine takes no more until it is under it.
#[derive(Args, Debug)]
#[command(override_usage = "headcount cap [PATH] ENGINE [N|none] [--tokens N|none]")]
pub(crate) struct Cap {
    /// The table (unless HEADCOUNT_TABLE names it), the engine, and the most requests in flight on it.
    #[arg(required = true, value_name = "PATH|ENGINE|N")]
    arguments: Vec<OsString>,
    /// The most tokens in flight on it.
    #[arg(long, value_name = "N|none")]
    tokens: Option<String>,
    #[command(flatten)]
    owner: Owner,
}

impl Cap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (source, words) = Source::split(&self.arguments, self.owner)?;
        let (name, requests) = match words.as_slice() {
            [name] if self.tokens.is_some() => (name, None),
            [name, requests] => (name, Some(cap(requests)?)),
            _ => {
                return Err(Failure::usage(
                    "which cap? give one engine and its cap, a number or none",
                ));
            }
        };
        let tokens = self.tokens.as_deref().map(cap).transpose()?;
        let table = source.open()?;
        let engine = find(&table, name)?;
        let view = table.snapshot();
        let (old_requests, old_tokens) = view
            .engine(engine)
            .map_or((None, None), |e| (e.max_in_flight, e.max_tokens));
        let requests = requests.unwrap_or(old_requests);
        let tokens = tokens.unwrap_or(old_tokens);
        table.set_caps(engine, requests, tokens)?;
        // A cap beyond what can be counted is none.
        let view = table.snapshot();
        let (requests, tokens) = view
            .engine(engine)
            .map_or((requests, tokens), |e| (e.max_in_flight, e.max_tokens));
        let say = |cap: Option<u32>, what| match cap {
            Some(cap) => format!("at most {cap} {what}"),
            None => format!("no cap on {what}"),
        };
        print(&format!(
            "{}: {}, {}\n",
            printable(name),
            say(requests, "requests"),
            say(tokens, "tokens")
        ))?;
        Ok(Outcome::Fine)
    }
}

/// Change an engine's weight: how much it can do, compared with the others.
#[derive(Args, Debug)]
#[command(override_usage = "headcount weight [PATH] ENGINE WEIGHT")]
pub(crate) struct Weight {
    /// The table (unless HEADCOUNT_TABLE names it), the engine, and its weight, a number above 0.
    #[arg(required = true, value_name = "PATH|ENGINE|WEIGHT")]
    arguments: Vec<OsString>,
    #[command(flatten)]
    owner: Owner,
}

impl Weight {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (source, words) = Source::split(&self.arguments, self.owner)?;
        let [name, text] = words.as_slice() else {
            return Err(Failure::usage(
                "which weight? give one engine and its weight, a number above 0",
            ));
        };
        let weight = weight(text).map_err(Failure::usage)?;
        let table = source.open()?;
        table.set_weight(find(&table, name)?, weight)?;
        print(&format!("{}: weight {weight}\n", printable(name)))?;
        Ok(Outcome::Fine)
    }
}

/// The engine of that name; `@3` is the engine with number 3, unless one is called so.
pub(crate) fn find(table: &Table, name: &str) -> Result<EngineId, Failure> {
    find_all(table, &[name]).map(|found| found[0])
}

/// The engines of these names, at one look. What is done to them later is done to these, or fails if one
/// has gone: another may have its number by then.
fn find_all(table: &Table, names: &[impl AsRef<str>]) -> Result<Vec<EngineId>, Failure> {
    let view = table.snapshot();
    let there = view
        .engines
        .iter()
        .filter(|engine| engine.state != EngineState::Leaving);
    let ids: HashMap<&str, EngineId> = there.map(|e| (e.name.as_str(), e.id)).collect();
    let find = |name: &str| {
        let by_number = || {
            let number: usize = name.strip_prefix('@')?.parse().ok()?;
            view.engine(number).map(|engine| engine.id)
        };
        ids.get(name).copied().or_else(by_number)
    };
    let found = names.iter().map(AsRef::as_ref).map(|name| {
        find(name).ok_or_else(|| {
            Failure::usage(format!(
                "there is no engine {:?} in {}; `headcount show` lists those that there are",
                printable(name),
                table.path().display()
            ))
        })
    });
    found.collect()
}

/// An engine as it is typed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NamedWeight {
    pub(crate) name: String,
    pub(crate) weight: Option<f32>,
}

/// Reads `NAME` or `NAME=WEIGHT`; a name may have equals signs, if what follows the last is no number.
pub(crate) fn named_weight(text: &str) -> Result<NamedWeight, String> {
    let named = match text.rsplit_once('=') {
        Some((name, last)) if looks_like_a_number(last) => NamedWeight {
            name: name.to_owned(),
            weight: Some(weight(last)?),
        },
        _ => NamedWeight {
            name: text.to_owned(),
            weight: None,
        },
    };
    match named.name.is_empty() {
        true => Err("an engine has a name; give it as NAME or NAME=WEIGHT".to_owned()),
        false => Ok(named),
    }
}

fn looks_like_a_number(text: &str) -> bool {
    text.parse::<f32>().is_ok() || text.is_empty()
}

fn weight(text: &str) -> Result<f32, String> {
    text.parse::<f32>()
        .ok()
        .filter(|weight| weight.is_normal() && *weight > 0.0)
        .ok_or_else(|| format!("the weight {text:?} cannot be; give a finite number above 0"))
}

fn cap(text: &str) -> Result<Option<u32>, Failure> {
    match text {
        "none" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            Failure::usage(format!(
                "the cap {number:?} cannot be; give a number from 0 to {}, or none",
                u32::MAX
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_typed_with_or_without_a_weight() {
        let read = |text| named_weight(text).map(|n| (n.name, n.weight));
        assert_eq!(read("a"), Ok(("a".into(), None)));
        assert_eq!(read("a=2.5"), Ok(("a".into(), Some(2.5))));
        let query = "http://h:1/v1?model=x";
        assert_eq!(read(query), Ok((query.into(), None)));
        for wrong in ["", "=2", "a=0", "a=-1", "a=nan", "a=inf", "a="] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
