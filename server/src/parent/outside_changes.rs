//! Logs what other processes change in the table while a deployment runs: an operator with the command,
//! say. Such a change stands until the list of engines is read again.

use crate::engine::address::Address;
use headcount::{EngineState, EngineView, Table};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cap in requests, cap in tokens.
type Caps = (Option<u32>, Option<u32>);

/// The remark on a cap in tokens in a deployment that counts none.
const NOT_COUNTED: &str = "this deployment does not count tokens, so the cap has no effect; for caps in tokens, start it with --policy tokens or --max-tokens N";

/// A table's caps and engines at one moment.
#[derive(Debug)]
pub(crate) struct Configuration {
    total: Caps,
    engines: BTreeMap<String, EngineView>,
}

impl Configuration {
    pub(crate) fn of(table: &Table) -> Self {
        let view = table.view();
        let here = (view.engines.into_iter()).filter(|e| e.state != EngineState::Leaving);
        Self {
            total: (view.max_in_flight, view.max_tokens),
            engines: here.map(|engine| (engine.name.clone(), engine)).collect(),
        }
    }

    /// Notes that this process has brought an engine up, and has logged it.
    pub(crate) fn is_up(&mut self, engine: &str) {
        if let Some(engine) = self.engines.get_mut(engine) {
            engine.state = EngineState::Active;
        }
    }

    /// Takes the configuration from the table again. Returns what has changed since the last time, a line for each
    /// change.
    pub(crate) fn renew(&mut self, table: &Table, counts_tokens: bool) -> Vec<String> {
        let before = std::mem::replace(self, Self::of(table));
        let mut lines = Vec::new();
        let mut say =
            |change| lines.push(format!("another process has changed the table: {change}"));
        let in_vain = |cap: Option<u32>| cap.is_some() && !counts_tokens;
        let remark = |change: String, cap| {
            if in_vain(cap) {
                format!("{change}; {NOT_COUNTED}")
            } else {
                change
            }
        };
        let [requests, tokens] = changes_of_caps(before.total, self.total);
        if let Some(change) = requests {
            say(format!("max_in_flight_total {change}"));
        }
        if let Some(change) = tokens {
            say(remark(format!("max_tokens_total {change}"), self.total.1));
        }
        for (name, now) in &self.engines {
            let Some(old) = before.engines.get(name) else {
                say(if in_vain(now.max_tokens) {
                    format!("engine {name}: added, with a cap in tokens; {NOT_COUNTED}")
                } else {
                    format!("engine {name}: added")
                });
                continue;
            };
            if old.weight != now.weight {
                say(format!(
                    "engine {name}: weight {}, now {}",
                    old.weight, now.weight
                ));
            }
            let [requests, tokens] = changes_of_caps(caps(old), caps(now));
            if let Some(change) = requests {
                say(format!("engine {name}: max_in_flight {change}"));
            }
            if let Some(change) = tokens {
                let change = format!("engine {name}: max_tokens {change}");
                say(remark(change, now.max_tokens));
            }
        }
        for name in (before.engines.keys()).filter(|name| !self.engines.contains_key(*name)) {
            say(format!("engine {name}: removed"));
        }
        for (name, now) in &self.engines {
            let old = before.engines.get(name);
            let old = old.map_or(EngineState::Active, |old| old.state);
            if old != now.state {
                lines.push(change_of_state(name, old, now.state));
            }
        }
        lines
    }
}

fn change_of_state(name: &str, old: EngineState, now: EngineState) -> String {
    let change = format!("engine {name}: {}, now {}", old.name(), now.name());
    match now {
        EngineState::Down if name.parse::<Address>().is_err() => {
            format!("{change}; its name is not an address, so it stays down until it is removed")
        }
        // Either a worker has not reached it, and has logged why, or an operator took it down. The table does not
        // tell which.
        EngineState::Down => format!("{change}; it is probed until it answers"),
        _ => format!("another process has changed the table: {change}"),
    }
}

fn caps(engine: &EngineView) -> Caps {
    (engine.max_in_flight, engine.max_tokens)
}

/// Returns how the cap in requests and the cap in tokens have changed, if they have.
fn changes_of_caps(old: Caps, now: Caps) -> [Option<String>; 2] {
    let cap = |cap: Option<u32>| cap.map_or("none".to_owned(), |cap| cap.to_string());
    let change = |old, now| (old != now).then(|| format!("{}, now {}", cap(old), cap(now)));
    [change(old.0, now.0), change(old.1, now.1)]
}

/// Locks a configuration that the parent and its probes share.
pub(crate) fn lock(configuration: &Mutex<Configuration>) -> MutexGuard<'_, Configuration> {
    configuration.lock().unwrap_or_else(PoisonError::into_inner)
}
