//! `headcount reap`.

use crate::failure::{Failure, Outcome};
use crate::format::count;
use crate::output::print;
use crate::table_arg::Which;
use clap::Args;

/// Return to the engines what dead frontends held. Those that live are left alone.
#[derive(Args, Debug)]
pub(crate) struct Reap {
    #[command(flatten)]
    which: Which,
}

impl Reap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let source = self.which.source()?;
        // Opening reaps, so what was there is seen before.
        let before = source.look()?.view();
        let dead = before.frontends.iter().filter(|frontend| !frontend.alive);
        let (mut frontends, mut requests) = (0_u64, 0_u64);
        for frontend in dead {
            frontends += 1;
            requests += frontend.in_flight;
        }
        let table = source.open()?;
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
