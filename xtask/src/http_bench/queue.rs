//! Requests that wait for a place, in the queue of HAProxy and in that of the front end: for how long, in which order, and
//! what a kill leaves of it.

use super::stage::{Stage, kill};
use super::{ENGINES, Front, Programs, failed, median};
use crate::step::Failed;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// The cap of an engine.
const CAP: usize = 4;
/// How many requests come, how long after each other, and how long an engine takes for one.
const REQUESTS: usize = 160;
const APART: Duration = Duration::from_millis(2);
const TAKES: Duration = Duration::from_millis(50);
/// When a process is killed in the second part, after the first request.
const KILLED_AFTER: Duration = Duration::from_millis(250);

/// What came of one request, in the order in which they were sent.
#[derive(Clone, Copy, Debug)]
struct Answer {
    sent: Instant,
    answered: Instant,
    status: u16,
}

/// Prints both parts as tables in Markdown.
pub(super) fn run(programs: &Programs, rounds: usize) -> Result<(), Failed> {
    let mut fronts = vec![Front::Headcount];
    fronts.splice(0..0, programs.haproxy.is_some().then_some(Front::Haproxy));
    println!(
        "\n{REQUESTS} requests, one every {} ms, to {ENGINES} engines of cap {CAP} that take {} ms for each, medians of {rounds} rounds. The \
         front end has four workers and one queue, HAProxy one process with a queue for each engine and one for all.\n",
        APART.as_millis(),
        TAKES.as_millis()
    );
    println!(
        "| in front | wait p50 ms | wait p99 ms | answered before an earlier one: pairs | by at most | not answered with 200 |"
    );
    println!("|---|---|---|---|---|---|");
    for front in &fronts {
        let mut all = Vec::new();
        for _ in 0..rounds {
            all.push(burst(*front, programs, false)?);
        }
        let of = |value: &dyn Fn(&[Answer]) -> f64| median(all.iter().map(|one| value(one)));
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            front.name(),
            of(&|answers| wait(answers, 0.5)),
            of(&|answers| wait(answers, 0.99)),
            of(&|answers| overtakings(answers).0 as f64),
            of(&|answers| overtakings(answers).1 as f64),
            of(&|answers| bad(answers) as f64),
        );
    }
    println!(
        "\nThe same, and {} ms after the first request one process of the front end is killed with SIGKILL.\n",
        KILLED_AFTER.as_millis()
    );
    println!("| in front | answered with 200 | not answered | longest wait of those answered ms |");
    println!("|---|---|---|---|");
    for front in &fronts {
        let answers = burst(*front, programs, true)?;
        let fine: Vec<_> = (answers.iter().copied().filter(|a| a.status == 200)).collect();
        println!(
            "| {} | {} | {} | {:.0} |",
            front.name(),
            fine.len(),
            bad(&answers),
            wait(&fine, 1.0)
        );
    }
    Ok(())
}

/// Sends all requests, each on a connection of its own, and waits for the answers.
fn burst(front: Front, programs: &Programs, kills: bool) -> Result<Vec<Answer>, Failed> {
    let step = format!("{}", TAKES.as_secs_f64());
    let stage = Stage::set_with_queue(front, programs, CAP, &step, REQUESTS)?;
    let victim = match front {
        Front::Headcount => stage.workers()?.first().copied(),
        _ => stage.processes()?.first().copied(),
    };
    let connections: Vec<TcpStream> = (0..REQUESTS)
        .map(|_| stage.connect())
        .collect::<Result<_, _>>()?;
    let start = Instant::now() + Duration::from_millis(50);
    let answers: Vec<_> = thread::scope(|scope| {
        let askers: Vec<_> = (connections.into_iter().enumerate())
            .map(|(number, stream)| {
                scope.spawn(move || {
                    let due = start + APART * number as u32;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    let sent = Instant::now();
                    let status = Stage::ask_on(stream, "{\"max_tokens\":1}").unwrap_or(0);
                    Answer {
                        sent,
                        answered: Instant::now(),
                        status,
                    }
                })
            })
            .collect();
        if kills && let Some(victim) = victim {
            thread::sleep((start + KILLED_AFTER).saturating_duration_since(Instant::now()));
            let _ = kill(victim);
        }
        askers.into_iter().map(|asker| asker.join()).collect()
    });
    answers
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|_| failed("asking", &"a thread has panicked"))
}

/// A quantile of the time that requests took above that of an engine, in milliseconds.
fn wait(answers: &[Answer], share: f64) -> f64 {
    let mut waits: Vec<_> = (answers.iter())
        .filter(|answer| answer.status == 200)
        .map(|answer| {
            (answer.answered - answer.sent)
                .saturating_sub(TAKES)
                .as_secs_f64()
                * 1e3
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    let at = (waits.len().saturating_sub(1) as f64 * share) as usize;
    waits.get(at).copied().unwrap_or(f64::NAN)
}

/// How many pairs of requests were answered in the other order than they were sent in, and how many sent later at most
/// were answered before one. Those that an engine served at the same time do not count: half of its time apart.
fn overtakings(answers: &[Answer]) -> (usize, usize) {
    let before = |early: &Answer, late: &Answer| late.answered + TAKES / 2 < early.answered;
    let counts = answers.iter().enumerate().map(|(at, early)| {
        let later = answers[at + 1..].iter();
        later.filter(|late| before(early, late)).count()
    });
    let counts: Vec<_> = counts.collect();
    (counts.iter().sum(), counts.into_iter().max().unwrap_or(0))
}

fn bad(answers: &[Answer]) -> usize {
    answers.iter().filter(|a| a.status != 200).count()
}
