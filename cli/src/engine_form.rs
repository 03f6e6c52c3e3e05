//! The form of engines in arguments and in files, the same for all commands and for `headcount-server`.

use crate::caps::{MOST_REQUESTS, MOST_TOKENS, a_number};
use crate::failure::Failure;
use crate::output::{printable, printable_path};
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, value_parser};
use headcount::Engine;
use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An engine as an argument or a line gives it: `NAME [weight=W] [max_in_flight=N] [max_tokens=N]`. Instead of `NAME weight=W`
/// it may be `NAME=W`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TypedEngine {
    pub(crate) name: String,
    weight: Option<f32>,
    max_in_flight: Option<u32>,
    max_tokens: Option<u32>,
}

/// The caps of the engines that have none of their own.
#[derive(Args, Clone, Copy, Debug)]
#[command(arg = no_weight())]
pub(crate) struct EachCaps {
    /// The most requests in flight on each engine without a cap of its own [default: no cap].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = value_parser!(u32).range(1..=i64::from(MOST_REQUESTS)))]
    max_in_flight: Option<u32>,
    /// The most tokens in flight on each engine without a cap of its own [default: no cap].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = value_parser!(u32).range(1..=i64::from(MOST_TOKENS)))]
    max_tokens: Option<u32>,
}

/// The option `--weight`, which is refused with the form of a weight.
fn no_weight() -> Arg {
    let advice = "a weight belongs to its engine; write NAME=WEIGHT or \"NAME weight=W\"";
    Arg::new("no_weight")
        .long("weight")
        .value_name("W")
        .num_args(0..=1)
        .default_missing_value("")
        .value_parser(UnknownArgumentValueParser::suggest(advice))
        .hide(true)
}

/// Engines, one by one or in a file.
#[derive(Args, Clone, Debug)]
pub(crate) struct EngineList {
    /// An engine, as NAME, NAME=WEIGHT or "NAME [weight=W] [max_in_flight=N] [max_tokens=N]". May be
    /// repeated. The weight says how much it can do compared with the others (1).
    #[arg(short, long = "engine", value_name = "ENGINE")]
    engines: Vec<TypedEngine>,
    /// A file with one engine a line, in the same form; lines that start with # are comments.
    #[arg(long, value_name = "FILE", conflicts_with = "engines",
          value_hint = clap::ValueHint::FilePath)]
    engines_file: Option<PathBuf>,
    #[command(flatten)]
    caps: EachCaps,
}

impl TypedEngine {
    /// Returns the engine for the table.
    pub(crate) fn engine(&self, caps: EachCaps) -> Engine {
        let mut engine = Engine::named(&self.name).weight(self.weight.unwrap_or(1.0));
        if let Some(requests) = self.max_in_flight.or(caps.max_in_flight) {
            engine = engine.max_in_flight(requests);
        }
        if let Some(tokens) = self.max_tokens.or(caps.max_tokens) {
            engine = engine.max_tokens(tokens);
        }
        engine
    }
}

impl EngineList {
    /// Returns the engines for the table.
    pub(crate) fn read(&self) -> Result<Vec<Engine>, Failure> {
        let typed = match &self.engines_file {
            Some(path) => read_file(path)?,
            None => self.engines.clone(),
        };
        each_once(typed.iter().map(|typed| typed.name.as_str()))?;
        Ok(typed.iter().map(|t| t.engine(self.caps)).collect())
    }

    /// The failure that no engine is given, with further advice.
    pub(crate) fn none(&self, advice: &str) -> Failure {
        Failure::usage(match &self.engines_file {
            Some(path) => {
                let path = printable_path(path);
                format!("{path} names no engine; give at least one, on a line of its own{advice}")
            }
            None => format!("which engines? give --engine or --engines-file{advice}"),
        })
    }
}

/// Refuses a repeated engine.
pub(crate) fn each_once<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(Failure::usage(format!(
            "the engine {:?} is given twice; give it once",
            printable(twice)
        ))),
        None => Ok(()),
    }
}

fn read_file(path: &Path) -> Result<Vec<TypedEngine>, Failure> {
    let at = path.display();
    // Far more than a table can use. A pipe will do, and one that does not end must not fill the memory.
    const LONGEST: u64 = 16 << 20;
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    if read.as_ref().is_ok_and(|&bytes| bytes as u64 > LONGEST) {
        return Err(Failure::usage(format!(
            "reading {at}: more than {LONGEST} bytes; check --engines-file"
        )));
    }
    read.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::InvalidData => "save it as UTF-8",
            _ => "check --engines-file",
        };
        Failure::usage(format!("reading {at}: {error}; {advice}"))
    })?;
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines = (1..).zip(text.lines().map(str::trim));
    let engines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    engines
        .map(|(number, line)| {
            let wrong = |why| Failure::usage(format!("{at}, line {number}: {why}"));
            line.parse().map_err(wrong)
        })
        .collect()
}

const SETTINGS: [&str; 3] = ["weight", "max_in_flight", "max_tokens"];

impl FromStr for TypedEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let (mut weight, mut max_in_flight, mut max_tokens) = (None, None, None);
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let twice = match key {
                "weight" => weight.replace(a_weight(value)?).is_some(),
                "max_in_flight" => max_in_flight
                    .replace(a_cap(word, value, MOST_REQUESTS)?)
                    .is_some(),
                "max_tokens" => max_tokens
                    .replace(a_cap(word, value, MOST_TOKENS)?)
                    .is_some(),
                _ => {
                    return Err(format!(
                        "{word:?} is unknown; after the name come weight=, max_in_flight= and max_tokens="
                    ));
                }
            };
            if twice {
                return Err(format!("{key} is given twice; give it once"));
            }
        }
        let (name, short) = name_and_weight(first, weight.is_some())?;
        if short.is_some() && weight.is_some() {
            return Err(format!("{first:?} gives a weight, too; give it once"));
        }
        Ok(Self {
            name: name.to_owned(),
            weight: weight.or(short),
            max_in_flight,
            max_tokens,
        })
    }
}

/// Splits a word into a name and a weight. In a name with a question mark, which is a URL with a query, equals signs
/// and commas belong to the name. Any other word has at most one equals sign, before the weight.
fn name_and_weight(word: &str, weight_follows: bool) -> Result<(&str, Option<f32>), String> {
    let unclear = || {
        format!(
            "{word:?} could be meant in several ways; write NAME, NAME=WEIGHT or \"NAME weight=W\", and each engine apart from the others"
        )
    };
    if let Some((_, query)) = word.split_once('?') {
        let last = query.rsplit('&').next().unwrap_or_default();
        return match last.matches('=').count() > 1 && !weight_follows {
            // Its end could be a weight.
            true => Err(format!(
                "the end of {word:?} could be a weight; write \"{word} weight=1\", as one argument, if it belongs to the name"
            )),
            false => Ok((word, None)),
        };
    }
    let (name, weight) = match word.split_once('=') {
        Some((name, weight)) if weight.parse::<f32>().is_ok() => (name, Some(a_weight(weight)?)),
        Some(_) => return Err(unclear()),
        None => (word, None),
    };
    match name {
        "" => Err("an engine has a name; write NAME, NAME=WEIGHT or \"NAME weight=W\"".to_owned()),
        _ if name.contains(',') => Err(unclear()),
        _ if weight.is_some() && SETTINGS.contains(&name) => Err(format!(
            "{word:?} belongs to an engine; write both as one argument, \"NAME {word}\""
        )),
        _ => Ok((name, weight)),
    }
}

/// Reads a weight.
pub(crate) fn a_weight(text: &str) -> Result<f32, String> {
    text.parse::<f32>()
        .ok()
        .filter(|weight| weight.is_normal() && *weight > 0.0)
        .ok_or_else(|| format!("the weight {text:?} is not valid; give a finite number above 0"))
}

fn a_cap(word: &str, value: &str, most: u32) -> Result<u32, String> {
    a_number(value, most).map_err(|expected| format!("{word:?} is no cap; give {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read<'a> = (&'a str, Option<f32>, Option<u32>, Option<u32>);

    #[test]
    fn an_engine_is_typed_in_one_of_two_forms() {
        let right: [(&str, Read<'_>); 8] = [
            ("a", ("a", None, None, None)),
            ("a=2.5", ("a", Some(2.5), None, None)),
            ("a=2 max_tokens=9", ("a", Some(2.0), None, Some(9))),
            (
                " http://h:1  weight=3 max_in_flight=8 max_tokens=900",
                ("http://h:1", Some(3.0), Some(8), Some(900)),
            ),
            (
                "http://h/v1?m=x&y=2",
                ("http://h/v1?m=x&y=2", None, None, None),
            ),
            (
                "http://h/v1?m=x,z&y",
                ("http://h/v1?m=x,z&y", None, None, None),
            ),
            (
                "http://h/v1?x=y=2.5 weight=4",
                ("http://h/v1?x=y=2.5", Some(4.0), None, None),
            ),
            ("max_tokens", ("max_tokens", None, None, None)),
        ];
        for (text, expected) in right {
            let TypedEngine {
                name,
                weight,
                max_in_flight,
                max_tokens,
            } = text.parse().unwrap();
            let read = (name.as_str(), weight, max_in_flight, max_tokens);
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn an_ambiguous_engine_is_refused() {
        for wrong in [
            "",
            "=2",
            "a=0",
            "a=-1",
            "a=nan",
            "a=inf",
            "a=",
            "gpu=2x",
            "gpu-0=x",
            "gpu-0,gpu-1",
            "gpu-0=1,gpu-1=2",
            "gpu-0=1=2",
            "http://10.0.0.7:8000=2,5",
            "http://h/v1?x=y=2.5",
            "a=1 weight=2",
            "a weight=1 weight=1",
            "a weigth=1",
            "a b",
            "a max_in_flight=0",
            "a max_tokens=4294967296",
            "a weight",
            "weight=2",
            "max_tokens=5",
        ] {
            let refused = wrong.parse::<TypedEngine>();
            let sentence = refused.expect_err(wrong);
            assert!(!sentence.contains('\n'), "{sentence}");
        }
    }
}
