//! Whether the table still lies at its path, for the operator.
//!
//! Parent and workers have one table by its descriptor, so a deployment counts in one table whatever
//! becomes of the file. But the next deployment that opens the path counts in another one then, and the
//! two together exceed their caps.

use crate::log::say;
use headcount::{PathState, Table};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Looks at intervals, and says once what has happened.
pub(crate) async fn watch(table: Table, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = PathState::Here;
    loop {
        ticks.tick().await;
        // That it may not be looked at says nothing.
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
            "{path} was removed or renamed: this deployment goes on in its table, and the next one will count in another; start this one anew"
        ),
        PathState::Replaced => format!(
            "{path} was replaced by another file: this deployment goes on in its table, and those that open that one count apart from it; end one of them"
        ),
        _ => format!("{path} is the table of this deployment again"),
    }
}
