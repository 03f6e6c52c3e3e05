//! `headcount reap`.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::source::Source;
use clap::Args;

/// Return to the engines what dead frontends held. Those that live are left alone.
#[derive(Args, Debug)]
pub(crate) struct Reap {
    #[command(flatten)]
    source: Source,
}

impl Reap {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        // Opening reaps, so what was there is seen before.
        let before = self.source.look()?.snapshot();
        let dead = before.frontends.iter().filter(|frontend| !frontend.alive);
        let (mut frontends, mut requests) = (0_usize, 0_u64);
        for frontend in dead {
            frontends += 1;
            requests += frontend.in_flight;
        }
        let table = self.source.open()?;
        table.reap()?;
        let left = table.snapshot();
        let left = left.frontends.iter().filter(|f| !f.alive).count();
        print(&format!(
            "reaped {frontends} dead frontends, which had {requests} requests in flight\n"
        ))?;
        if left == 0 {
            return Ok(Outcome::Fine);
        }
        Err(Failure::failed(format!(
            "{left} dead frontends are still there: another process is reaping them (stopped?); try again"
        )))
    }
}
