//! Checks that the burst example shows what the README says of it.

use crate::step::{Failed, cargo};
use serde_json::Value;

/// Runs the example, small, with a frontend that is killed, and with caps, and checks its numbers.
pub(crate) fn check() -> Result<(), Failed> {
    let plain = results("--engines 4 --frontends 4 --requests 256 --rounds 2")?;
    for strategy in ["overwrite", "scaled", "floor", "headcount"] {
        find(&plain, strategy)?;
    }
    exact(&plain, 0)?;
    let odd = "--engines 7 --frontends 8 --requests 500 --rounds 2 --strategy headcount";
    exact(&results(odd)?, 1)?;
    let killed = results("--kill --strategy headcount")?;
    match number(find(&killed, "headcount")?, "leaked")? {
        0 => caps_survive_kills()
            .and_then(|()| killed_comes_first())
            .and_then(|()| requests_wait_in_order()),
        leaked => Err(Failed(format!("{leaked} requests leaked after a kill"))),
    }
}

/// Fails unless, while frontends are killed, the table keeps each cap and all places, and a plain shared counter
/// loses some.
fn caps_survive_kills() -> Result<(), Failed> {
    let held = results("--cap 4 --kills 3")?;
    let (shared, headcount) = (find(&held, "shared")?, find(&held, "headcount")?);
    let all_is_well = number(headcount, "most_on_an_engine")? <= 4
        && number(headcount, "in_flight_after_last_kill")? == 16
        && number(headcount, "leaked")? == 0
        && number(shared, "leaked")? > 0;
    match all_is_well {
        true => Ok(()),
        false => Err(Failed(format!("the burst example, with a cap: {held}"))),
    }
}

/// Fails unless, when bursts are larger than the caps, the queue serves requests better in their order than trying again
/// does, and refuses none.
fn requests_wait_in_order() -> Result<(), Failed> {
    let waited = results("--cap 4 --queue")?;
    let (again, queue) = (
        find(&waited, "headcount")?,
        find(&waited, "headcount-queue")?,
    );
    let all_is_well = number(queue, "most_on_an_engine")? <= 4
        && number(queue, "refused")? == 0
        && number(queue, "leaked")? == 0
        && number(queue, "overtaken")? < number(again, "overtaken")? / 2
        && number(again, "refused")? > 0;
    match all_is_well {
        true => Ok(()),
        false => Err(Failed(format!("the burst example, with a queue: {waited}"))),
    }
}

/// Fails unless the killed frontend's requests stand before how bursts were split.
fn killed_comes_first() -> Result<(), Failed> {
    let output = run("--kill --strategy headcount --rounds 1")?;
    let shown = String::from_utf8_lossy(&output);
    match (shown.find("got SIGKILL"), shown.find("Each burst:")) {
        (Some(killed), Some(bursts)) if killed < bursts => Ok(()),
        _ => Err(Failed(format!("the kill does not come first: {shown}"))),
    }
}

fn results(options: &str) -> Result<Value, Failed> {
    serde_json::from_slice(&run(&format!("--json {options}"))?)
        .map_err(|error| Failed(format!("the burst example printed no JSON: {error}")))
}

/// Runs the example and returns what it prints.
fn run(options: &str) -> Result<Vec<u8>, Failed> {
    let run = format!("run --release --quiet --example burst -- {options}");
    cargo("the burst example", &run).output()
}

/// Fails unless headcount split every burst with at most this spread, and leaked nothing.
fn exact(results: &Value, most: u64) -> Result<(), Failed> {
    let headcount = find(results, "headcount")?;
    let (spread, leaked) = (
        number(headcount, "worst_spread")?,
        number(headcount, "leaked")?,
    );
    if spread > most || leaked > 0 {
        return Err(Failed(format!(
            "the burst example: spread {spread}, leaked {leaked}"
        )));
    }
    Ok(())
}

fn find<'a>(results: &'a Value, strategy: &str) -> Result<&'a Value, Failed> {
    (results["results"].as_array().into_iter().flatten())
        .find(|result| result["strategy"] == strategy)
        .ok_or_else(|| Failed(format!("the burst example has no result for {strategy}")))
}

fn number(result: &Value, field: &str) -> Result<u64, Failed> {
    result[field]
        .as_u64()
        .ok_or_else(|| Failed(format!("the burst example gives no {field}: {result}")))
}
