//! `headcount reap`.

use crate::failure::{Failure, Outcome};
use crate::format::count;
use crate::output::print;
use crate::table_arg::PathArgs;
use clap::Args;
use headcount::FrontendView;

/// Return to the engines what dead frontends held. Living frontends keep what they hold.
#[derive(Args, Debug)]
pub(crate) struct Reap {
    #[command(flatten)]
    path: PathArgs,
}

impl Reap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table_arg = self.path.table_arg()?;
        // Opening reaps, so the command looks for the dead before.
        let before = table_arg.open_read_only()?.view();
        let table = table_arg.open()?;
        table.reap()?;
        let after = table.view();
        let (mut frontends, mut requests, mut left) = (0_u64, 0_u64, 0_u64);
        for frontend in before.frontends.iter().filter(|frontend| !frontend.alive) {
            if after.frontends.iter().any(|other| is_same(frontend, other)) {
                left += 1;
                continue;
            }
            frontends += 1;
            // Saturating: in a damaged file it may be any number.
            requests = frontend.in_flight.saturating_add(requests);
        }
        print(&format!(
            "reaped {}, which had {} in flight\n",
            count(frontends, "dead frontend"),
            count(requests, "request")
        ))?;
        if left == 0 {
            return Ok(Outcome::Fine);
        }
        let left = count(left, "dead frontend");
        Err(Failure::failed(format!(
            "not reaped: {left}, which another process is reaping (stopped?); try again"
        )))
    }
}

/// Whether two views are of one frontend. Another one may get its slot.
fn is_same(one: &FrontendView, other: &FrontendView) -> bool {
    let identity = |it: &FrontendView| (it.slot, it.pid, it.joined_at);
    identity(one) == identity(other)
}
