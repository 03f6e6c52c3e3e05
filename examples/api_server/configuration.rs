//! What other processes change in the table's configuration while a deployment runs, for the operator: one
//! with the command, say. It stands until the list is read again.

use headcount::{EngineState, Table};
use std::collections::BTreeMap;

/// Weight, cap in requests, cap in tokens.
type Settings = (f32, Option<u32>, Option<u32>);

/// A table's engines and caps at one moment.
#[derive(Debug)]
pub(crate) struct Configuration {
    total: (Option<u32>, Option<u32>),
    engines: BTreeMap<String, Settings>,
}

impl Configuration {
    pub(crate) fn of(table: &Table) -> Self {
        let view = table.snapshot();
        let here = (view.engines.into_iter()).filter(|e| e.state != EngineState::Leaving);
        Self {
            total: (view.max_in_flight, view.max_tokens),
            engines: here
                .map(|e| (e.name, (e.weight, e.max_in_flight, e.max_tokens)))
                .collect(),
        }
    }

    /// What has changed since the last time, a line for each.
    pub(crate) fn renew(&mut self, table: &Table) -> Vec<String> {
        let before = std::mem::replace(self, Self::of(table));
        let mut changes = Vec::new();
        for (name, settings) in &self.engines {
            match before.engines.get(name) {
                None => changes.push(format!("engine {name}: added")),
                Some(old) if old != settings => {
                    changes.push(format!("engine {name}: {}", describe(*settings)));
                }
                Some(_) => {}
            }
        }
        let removed = before.engines.keys();
        for name in removed.filter(|name| !self.engines.contains_key(*name)) {
            changes.push(format!("engine {name}: removed"));
        }
        if before.total != self.total {
            let (requests, tokens) = self.total;
            changes.push(format!(
                "all engines together: {}",
                describe_caps(requests, tokens)
            ));
        }
        changes
    }
}

fn describe((weight, requests, tokens): Settings) -> String {
    format!("weight {weight}, {}", describe_caps(requests, tokens))
}

fn describe_caps(requests: Option<u32>, tokens: Option<u32>) -> String {
    let cap = |cap: Option<u32>| cap.map_or("none".to_owned(), |cap| cap.to_string());
    format!(
        "max_in_flight {}, max_tokens {}",
        cap(requests),
        cap(tokens)
    )
}
