//! `headcount reap`.

use crate::failure::{Failure, Outcome};
use crate::format::count;
use crate::output::print;
use crate::table_arg::PathArgs;
use clap::Args;

/// Return to the engines what dead frontends held. Living frontends keep what they hold.
#[derive(Args, Debug)]
pub(crate) struct Reap {
    #[command(flatten)]
    path: PathArgs,
}

impl Reap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table_arg = self.path.table_arg()?;
        // Opening reaps, so the dead are counted before.
        let before = table_arg.open_read_only()?.view();
        let dead = before.frontends.iter().filter(|frontend| !frontend.alive);
        let (mut frontends, mut requests) = (0_u64, 0_u64);
        for frontend in dead {
            frontends += 1;
            // Saturating: in a damaged file it may be any number.
            requests = frontend.in_flight.saturating_add(requests);
        }
        let table = table_arg.open()?;
        table.reap()?;
        let left = table.view();
        let left = left.frontends.iter().filter(|f| !f.alive).count();
        print(&format!(
            "reaped {}, which had {} in flight\n",
            count(frontends, "dead frontend"),
            count(requests, "request")
        ))?;
        if left == 0 {
            return Ok(Outcome::Fine);
        }
        let left = count(left as u64, "dead frontend");
        Err(Failure::failed(format!(
            "not reaped: {left}, which another process is reaping (stopped?); try again"
        )))
    }
}
