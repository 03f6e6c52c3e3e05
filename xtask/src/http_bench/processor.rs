//! Processor time per request of each front end, at a fixed rate.
//!
//! In a round the front ends run one after the other, each with new engines, under the same open loop. A figure is
//! the median of the rounds, and a ratio the median of the ratios within the rounds: so other work on the machine
//! disturbs all of them alike.

use super::stage::Stage;
use super::{Front, NO_CAP, Programs, WORKERS, failed, median, not_fine};
use crate::step::Failed;
use std::fs;

/// How many times a second the kernel counts in `/proc/PID/stat` (`USER_HZ`, which is 100 on Linux).
const TICKS: f64 = 100.0;

/// The processor time of a request in one round, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Spent {
    user: f64,
    system: f64,
    /// Requests that were not answered with 200.
    bad: u64,
}

impl Spent {
    fn all(self) -> f64 {
        self.user + self.system
    }
}

/// Measures all front ends in turns and prints a table in Markdown.
pub(super) fn run(
    programs: &Programs,
    rounds: usize,
    seconds: u64,
    rate: usize,
) -> Result<(), Failed> {
    let mut fronts = vec![Front::Nginx];
    fronts.extend(programs.haproxy.is_some().then_some(Front::Haproxy));
    fronts.push(Front::Headcount);
    println!(
        "\nProcessor time at {rate} requests/s (open loop, keep-alive), all processes of a front end, {WORKERS} workers (of \
         HAProxy: threads), no access log, medians of {rounds} rounds of {seconds} s.\n"
    );
    println!(
        "| in front | µs a request | in user mode | in the kernel | to nginx (least to most) | not answered with 200 |"
    );
    println!("|---|---|---|---|---|---|");
    let mut spent = vec![Vec::new(); fronts.len()];
    for round in 0..rounds {
        // Each takes each place in the order.
        for turn in 0..fronts.len() {
            let place = (round + turn) % fronts.len();
            spent[place].push(measure(fronts[place], programs, seconds, rate)?);
        }
    }
    for (front, rounds) in fronts.iter().zip(&spent) {
        let of = |value: fn(&Spent) -> f64| median(rounds.iter().map(value));
        let ratios = rounds.iter().zip(&spent[0]);
        let ratios = ratios.map(|(front, nginx)| front.all() / nginx.all());
        let least = ratios.clone().fold(f64::INFINITY, f64::min);
        let most = ratios.clone().fold(0.0, f64::max);
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.2} ({least:.2} to {most:.2}) | {} |",
            front.name(),
            of(|spent| spent.all()),
            of(|spent| spent.user),
            of(|spent| spent.system),
            median(ratios),
            rounds.iter().map(|spent| spent.bad).sum::<u64>(),
        );
    }
    Ok(())
}

fn measure(front: Front, programs: &Programs, seconds: u64, rate: usize) -> Result<Spent, Failed> {
    let stage = Stage::set(front, programs, NO_CAP, "0.001")?;
    let rate = rate.to_string();
    // To open connections, and to fill caches.
    stage.load(&["--seconds", "1", "--rate", &rate])?;
    let before = used(&stage)?;
    let load = stage.load(&["--seconds", &seconds.to_string(), "--rate", &rate])?;
    let after = used(&stage)?;
    let statuses = load["statuses"].as_object().into_iter().flatten();
    let answered: u64 = statuses.filter_map(|(_, count)| count.as_u64()).sum();
    let each = |ticks: u64| ticks as f64 / TICKS * 1e6 / answered as f64;
    Ok(Spent {
        user: each(after.0 - before.0),
        system: each(after.1 - before.1),
        bad: not_fine(&load),
    })
}

/// Returns the processor time that all processes of the front end have used, with all their threads: in user mode and
/// in the kernel, in ticks.
fn used(stage: &Stage) -> Result<(u64, u64), Failed> {
    let mut sum = (0, 0);
    for pid in stage.processes()? {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        let stat = stat.map_err(|error| failed("reading the time of a process", &error))?;
        // Behind the name, which may have spaces, come the fields from the third on; 14 and 15 are the times.
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let mut times = fields.skip(11).map_while(|field| field.parse::<u64>().ok());
        let (Some(user), Some(system)) = (times.next(), times.next()) else {
            return Err(Failed(format!("/proc/{pid}/stat has no times: {stat}")));
        };
        sum = (sum.0 + user, sum.1 + system);
    }
    Ok(sum)
}
