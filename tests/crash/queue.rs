//! Operations on the queue: a process dies that finishes or waits, while another one waits for the same places.

use crate::Result;
use crate::operation::Operation;
use headcount::{AcquireError, Engine, Frontend, Options, Permit, Request, Table};
use headcount_tests::{Forked, Lead, TestTable, Tracee, in_flight, waiting};
use std::time::{Duration, Instant};

/// How many places there are.
const PLACES: u32 = 2;

/// How long a request waits that is to get a place.
const LONG: Duration = Duration::from_secs(30);

/// How long it may take at most until the one that waits is served, on a machine with much else to do.
const MOST: Duration = Duration::from_secs(5);

pub(crate) fn created() -> Options {
    let engine = Engine::named("0").max_in_flight(PLACES);
    let options = Table::options().engine(engine).max_engines(3);
    options.max_frontends(4).threads(1).max_waiting(9)
}

/// What the process is given to hold that is to be killed.
pub(crate) fn held_by(operation: Operation, frontend: &Frontend) -> Vec<Permit> {
    match operation {
        Operation::AcquireAndGiveUp => Vec::new(),
        _ => frontend.route_many(1).expect("routes"),
    }
}

/// Waits until its time is over.
pub(crate) fn give_up(frontend: &Frontend) {
    let ended = frontend.acquire(&Request::new(), Duration::from_millis(1));
    assert!(matches!(ended, Err(AcquireError::WaitedTooLong { .. })));
}

/// Waits, makes room itself when it is asked whether it goes on, and gets the place.
pub(crate) fn take(frontend: &Frontend, mut held: Vec<Permit>) {
    let acquired = frontend.acquire_while(&Request::new(), LONG, || {
        held.clear();
        true
    });
    std::mem::forget(acquired.expect("there is room"));
}

/// Kills a child that is led so far into its operation, while another process waits. `reaps`: another process reaps then,
/// and not the one that waits; and where the child gives up, it comes later than the other one.
pub(crate) fn try_one(operation: Operation, reaps: bool, lead: &mut Lead) -> Result<()> {
    let table = TestTable::new(&created());
    let survivor = table.join()?;
    let mut child = Tracee::fork(
        || operation.prepare(&table),
        |prepared| operation.perform(prepared),
        |()| (),
    )?;
    let of_child = in_flight(&table)[0];
    let mut permits = survivor.route_many((PLACES - of_child) as usize)?;
    let comes_first = match operation {
        Operation::AcquireAndTake => false,
        Operation::AcquireAndGiveUp => reaps,
        _ => true,
    };
    let mut waiter = None;
    if comes_first {
        waiter = Some(start_waiting(&table)?);
    }
    lead.lead(&mut child)?;
    let mut waiter = match waiter {
        Some(waiter) => waiter,
        None => start_waiting(&table)?,
    };
    drop(child);
    if operation == Operation::AcquireAndGiveUp {
        permits.truncate(1);
    }
    if reaps {
        table.reap()?;
    }
    let freed = Instant::now();
    while !waiter.has_reported()? {
        if freed.elapsed() > MOST {
            return Err(format!("not served: {:?}", table.view()).into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    waiter.report()?;
    table.reap()?;
    is_exact(&table, permits.len() as u32 + 1, 2)?;
    // All is as before when that one is gone, too.
    drop(waiter);
    table.reap()?;
    is_exact(&table, permits.len() as u32, 1)?;
    let new = table.join()?;
    drop(new.acquire(&Request::new(), Duration::ZERO)?);
    drop((new, permits));
    is_exact(&table, 0, 1)
}

/// Another process that waits, or has a place already.
fn start_waiting(table: &TestTable) -> Result<Forked<()>> {
    let before = waiting(table);
    let waiter = Forked::start(|| {
        let frontend = table.join().expect("joins");
        let acquired = frontend.acquire(&Request::new(), LONG);
        std::mem::forget((acquired.expect("is served"), frontend));
    })?;
    while waiting(table) <= before && !waiter.has_reported()? {
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(waiter)
}

/// Fails unless so many are in flight and so many frontends are there, none waits, and the table has no fault.
fn is_exact(table: &TestTable, requests: u32, frontends: usize) -> Result<()> {
    let view = table.view();
    let found = (
        view.engines[0].in_flight,
        view.frontends.len(),
        waiting(table),
    );
    if found != (requests, frontends, 0) {
        return Err(format!(
            "{found:?}, and {requests} in flight by {frontends}, 0 waiting expected"
        )
        .into());
    }
    match table.verify()?.faults.as_slice() {
        [] => Ok(()),
        faults => Err(format!("the table has faults: {faults:?}").into()),
    }
}
