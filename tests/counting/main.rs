//! C1 to C8: counts are exact in every race of operations.
//!
//! Rules: docs/contract.md.

mod caps;
mod choice;
mod exact;
mod finishing;
mod influence;
mod many;
mod ties;
mod tokens;

use headcount_tests::Actor;
use std::thread;
use std::time::Duration;

/// Has all actors route and finish for a while, two threads each; then they hold what they hold. Says
/// whether all of them did.
pub(crate) fn churn_for_a_while(actors: &mut [Actor]) -> bool {
    for actor in &mut *actors {
        actor.churn(2);
    }
    thread::sleep(Duration::from_millis(30));
    let mut did = true;
    for actor in actors {
        actor.pause();
        did &= actor.work_done().operations > 0;
    }
    did
}
