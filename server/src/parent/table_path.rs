//! Warns the operator when the table no longer lies at its path.
//!
//! Parent and workers have the table by its descriptor, so a deployment counts in one table whatever
//! happens to the file. But the next deployment that opens the path then counts in another table, and the
//! two together exceed their caps.

use crate::log::say;
use headcount::{PathState, Table};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Checks the path at intervals, and logs each change once.
pub(crate) async fn watch(table: Table, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = PathState::Here;
    loop {
        ticks.tick().await;
        // A path that cannot be examined tells nothing.
        let Ok(state) = table.path_state() else {
            continue;
        };
        if state != last && (state.is_split() || last.is_split()) {
            say(describe(&table, state));
        }
        last = state;
    }
}

fn describe(table: &Table, state: PathState) -> String {
    let path = table.path().display();
    match state {
        PathState::Gone => format!(
            "{path} was removed or renamed: this deployment goes on in its table, and the next one will count in another; restart this one"
        ),
        PathState::Replaced => format!(
            "{path} was replaced by another file: this deployment goes on in its table, and processes that open the new file count apart from it; end one of the two"
        ),
        _ => format!("{path} is the table of this deployment again"),
    }
}
