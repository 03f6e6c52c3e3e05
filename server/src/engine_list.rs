//! The list of engines: read from the command line or a file, and applied to the table.

use crate::address::{Address, SEVERAL};
use crate::error::Error;
use crate::options::Options;
use headcount::{Deployment, Difference, Engine, EngineState, Table};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;

/// How much of a word with a mistake in it is shown, in characters.
const SHOWN: usize = 80;

/// The largest caps of an engine. The next number is what the table has for none.
pub(crate) const MOST_IN_FLIGHT: u32 = headcount::MAX_IN_FLIGHT - 1;
pub(crate) const MOST_TOKENS: u32 = u32::MAX - 1;

/// An engine of the list: `http://HOST:PORT [weight=W] [max_in_flight=N] [max_tokens=N]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    /// Its address, which is its name in the table.
    pub(crate) name: String,
    address: Address,
    weight: f32,
    max_in_flight: Option<u32>,
    max_tokens: Option<u32>,
}

impl Entry {
    pub(crate) fn at(address: Address) -> Self {
        Self {
            name: address.to_string(),
            address,
            weight: 1.0,
            max_in_flight: None,
            max_tokens: None,
        }
    }

    fn is_same_engine(&self, other: &Self) -> bool {
        let (a, b) = (&self.address, &other.address);
        a.port == b.port && a.host.identity() == b.host.identity()
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let address = words.next().unwrap_or_default();
        let mut entry = Self::at(address.parse()?);
        let mut weight = None;
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let is_twice = match key {
                "weight" => weight.replace(a_weight(word, value)?).is_some(),
                "max_in_flight" => {
                    let cap = a_cap(word, value, MOST_IN_FLIGHT)?;
                    entry.max_in_flight.replace(cap).is_some()
                }
                "max_tokens" => {
                    let cap = a_cap(word, value, MOST_TOKENS)?;
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

fn a_weight(word: &str, value: &str) -> Result<f32, String> {
    let is_weight = |weight: &f32| weight.is_normal() && *weight > 0.0;
    let weight = value.parse().ok().filter(is_weight);
    let [least, most] = [f32::MIN_POSITIVE, f32::MAX];
    weight.ok_or_else(|| {
        let shown = shown(word);
        format!("{shown} is no weight; give a number from {least:.1e} to {most:.1e}")
    })
}

fn a_cap(word: &str, value: &str, most: u32) -> Result<u32, String> {
    let cap = value.parse().ok().filter(|cap| (1..=most).contains(cap));
    let shown = shown(word);
    cap.ok_or_else(|| format!("{shown} is no cap; give a number from 1 to {most}"))
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

/// A word as a message shows it: in quotes, and its beginning alone if it is long.
pub(crate) fn shown(word: &str) -> String {
    match word.char_indices().nth(SHOWN) {
        None => format!("{word:?}"),
        Some((end, _)) => format!("{:?}... ({} bytes)", &word[..end], word.len()),
    }
}

/// The text of a file. A pipe is refused: it would keep the parent waiting for who writes into it, and has
/// nothing left for the next reload.
fn text_of(path: &Path) -> io::Result<String> {
    // Else a pipe is waited for before it can be looked at.
    let mut file = (OpenOptions::new().read(true))
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // Some editors mark a file as UTF-8 with these bytes.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The list that the options give; none if they give none.
pub(crate) fn read(options: &Options) -> Result<Option<Vec<Entry>>, Error> {
    let (entries, place) = match &options.engines_file {
        None if options.engines.is_empty() => return Ok(None),
        None => (options.engines.clone(), "--engine".to_owned()),
        Some(path) => {
            let text = text_of(path).map_err(|source| Error::EnginesUnreadable {
                path: path.clone(),
                source,
            })?;
            let mut entries = Vec::new();
            for (number, line) in text.lines().enumerate() {
                let line = line.trim();
                if !line.is_empty() && !line.starts_with('#') {
                    let entry = line.parse().map_err(|reason| Error::EnginesMalformed {
                        path: path.clone(),
                        line: number + 1,
                        reason,
                    })?;
                    entries.push(entry);
                }
            }
            (entries, path.display().to_string())
        }
    };
    if !options.counts_tokens() && entries.iter().any(|entry| entry.max_tokens.is_some()) {
        return Err(Error::TokensNotCounted { place });
    }
    if entries.is_empty() {
        return Err(Error::NoEngines { place });
    }
    for (number, entry) in entries.iter().enumerate() {
        if entries[..number].iter().any(|e| e.is_same_engine(entry)) {
            let name = entry.name.clone();
            return Err(Error::Twice { place, name });
        }
    }
    Ok(Some(entries))
}

/// The configuration of the table: the engines of the list with their caps, and the cap of all together.
pub(crate) fn configuration(list: &[Entry], options: &Options) -> headcount::Options {
    let mut table = Table::options();
    for entry in list {
        let mut engine = Engine::named(&entry.name).weight(entry.weight);
        if let Some(cap) = entry.max_in_flight.or(options.max_in_flight) {
            engine = engine.max_in_flight(cap);
        }
        if let Some(cap) = entry.max_tokens.or(options.max_tokens) {
            engine = engine.max_tokens(cap);
        }
        table = table.engine(engine);
    }
    match options.max_in_flight_total {
        Some(cap) => table.max_in_flight(cap),
        None => table,
    }
}

/// Makes the table's engines those of the list, without disturbing a request: what is in flight on an
/// engine that leaves finishes as it would have. An engine of the list that was drained takes requests again;
/// one that is down is left to the probes. Returns what was changed, a line for each.
pub(crate) fn apply(
    deployment: &Deployment,
    list: &[Entry],
    options: &Options,
) -> Result<Vec<String>, Error> {
    let table = deployment.table();
    let room = table.dimensions().max_engines;
    if list.len() > room {
        let asked = list.len();
        return Err(Error::TooManyEngines { asked, room });
    }
    let wanted = configuration(list, options);
    let before = table.differences(&wanted);
    let changes = match deployment.apply(&wanted) {
        Err(headcount::Error::EnginesFull { .. }) => {
            return Err(in_part(&before, &table.differences(&wanted)));
        }
        changes => changes?,
    };
    let mut lines: Vec<_> = changes.differences.iter().map(line).collect();
    for engine in table.view().engines {
        if engine.state == EngineState::Draining {
            table.up(engine.id)?;
            lines.push(format!("engine {}: takes requests again", engine.name));
        }
    }
    Ok(lines)
}

/// What was changed of what was to be changed, and what was not.
fn in_part(wanted: &[Difference], left: &[Difference]) -> Error {
    let (left_of_it, changed): (Vec<_>, Vec<_>) =
        (wanted.iter()).partition(|change| left.contains(change));
    let say = |changes: Vec<_>| changes.into_iter().map(line).collect::<Vec<_>>().join(", ");
    Error::InPart {
        changed: say(changed),
        left: say(left_of_it),
    }
}

/// A change, with the name that a cap of all engines together has in options and in the command.
fn line(change: &Difference) -> String {
    let (option, found, asked) = (change.option, &change.found, &change.asked);
    match &change.engine {
        Some(_) => change.change(),
        None => format!("{option}_total {found}, now {asked}"),
    }
}
