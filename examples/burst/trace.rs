//! Reads the arrivals of a recorded trace.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::arrivals::Arrival;
use crate::error::Error;
use crate::options::{Options, TRACE_PORTION};
use crate::wire::Request;

/// The columns that a trace must have, in any order.
pub(crate) const COLUMNS: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];

/// The portion of the trace to replay, sped up as asked for.
pub(crate) fn read(path: &Path, options: &Options) -> Result<Vec<Arrival>, Error> {
    let bytes = fs::read(path).map_err(|source| Error::TraceUnreadable {
        path: path.to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let mut arrivals = parse(path, &text)?;

    arrivals.sort_by_key(|arrival| arrival.at);
    let start = arrivals[0].at;
    for (arrival, id) in arrivals.iter_mut().zip(0..) {
        arrival.at = (arrival.at - start).div_f64(options.speedup);
        arrival.request.id = id;
        // In turn: the trace does not record connections.
        arrival.connection = id;
    }
    let portion = match options.requests {
        Some(requests) => requests as usize,
        None => arrivals.partition_point(|arrival| arrival.at <= TRACE_PORTION),
    };
    arrivals.truncate(portion);
    Ok(arrivals)
}

/// At least one arrival, at times since 1970.
fn parse(path: &Path, text: &str) -> Result<Vec<Arrival>, Error> {
    let malformed = |line: usize, found: &str, expected: &str| Error::TraceMalformed {
        path: path.to_owned(),
        line,
        found: if found.is_empty() {
            "nothing".to_owned()
        } else {
            format!("{:?}", shortened(found))
        },
        expected: expected.to_owned(),
    };

    let mut lines = (1..).zip(text.lines());
    let header = lines.next().map_or("", |(_, line)| line);
    let names: Vec<_> = header
        .trim_start_matches('\u{feff}')
        .split(',')
        .map(str::trim)
        .collect();
    let mut columns = [0; COLUMNS.len()];
    for (column, wanted) in columns.iter_mut().zip(COLUMNS) {
        *column = names
            .iter()
            .position(|name| *name == wanted)
            .ok_or_else(|| malformed(1, header, &format!("a header with the column {wanted}")))?;
    }

    let mut arrivals = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let field = |column: usize| fields.get(columns[column]).copied().unwrap_or("");
        let count = |column: usize| {
            let found = field(column);
            found.parse::<u32>().map_err(|_| {
                malformed(
                    number,
                    found,
                    &format!("a whole number of tokens as {}", COLUMNS[column]),
                )
            })
        };
        let at = timestamp(field(0)).ok_or_else(|| {
            malformed(
                number,
                field(0),
                "a TIMESTAMP such as 2023-11-16 18:17:03.9799600",
            )
        })?;
        // Even a request that generated nothing was in the batch once.
        let request = Request {
            id: 0,
            tokens: count(1)?,
            steps: count(2)?.max(1),
        };
        arrivals.push(Arrival {
            at,
            connection: 0,
            request,
        });
    }
    if arrivals.is_empty() {
        return Err(malformed(2, "", "at least one arrival"));
    }
    Ok(arrivals)
}

/// The time since 1970 of `YYYY-MM-DD HH:MM:SS[.fraction]`.
fn timestamp(text: &str) -> Option<Duration> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let [year, month, day] = three(date, '-')?;
    let days = days_since_1970(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    let [hours, minutes, seconds] = three(time, ':')?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds: f64 = seconds.parse().ok()?;
    if hours >= 24 || minutes >= 60 || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let minutes = (days * 24 + hours) * 60 + minutes;
    Some(Duration::from_secs(minutes * 60) + Duration::from_secs_f64(seconds))
}

fn three(text: &str, separator: char) -> Option<[&str; 3]> {
    text.split(separator).collect::<Vec<_>>().try_into().ok()
}

/// In the Gregorian calendar: years begin in March, so that the leap day is their last, and repeat
/// every 400 (Howard Hinnant, chrono-compatible low-level date algorithms, `days_from_civil`).
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468)
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}
