//! Observations of a case, in a form that can be compared; and faults, whatever the other fronts do.

use crate::case::Case;
use crate::client::{self, End, Got};
use crate::engine::Seen;
use crate::fronts::{Door, Kind};
use crate::message::{Framing, Message, in_short};
use headcount::Table;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The observation of a case at a front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// What the client received.
    pub(crate) client: String,
    /// What the engine received.
    pub(crate) engine: String,
    /// How many requests `headcount-server` counted.
    pub(crate) places: Option<u64>,
}

/// Headers that fronts add or that concern one connection only.
const OF_FRONTS: [&str; 11] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "transfer-encoding",
    "x-accel-buffering",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-headcount-engine",
    "x-request-id",
];

/// Acts a case at a front, and finds the faults of `headcount-server`. `before` is the recorded
/// observation: it says only how long to wait for what may not come.
pub(crate) fn observe(
    case: &Arc<Case>,
    kind: Kind,
    door: &Door,
    before: Option<&Observed>,
) -> (Observed, Vec<String>) {
    let table = door.table.as_deref();
    let admitted = || table.map(|table| table.view().engines[0].admitted_total);
    let at_start = admitted();
    let is_told = before.is_some_and(|before| !before.engine.contains("not told"));
    let is_silent = before
        .is_some_and(|before| before.client.ends_with("silent") || before.client.contains("then "));
    door.engine.begin(case, is_told || kind == Kind::Ours);
    let mut got = client::act(case, door.address, &door.engine, table, is_silent);
    if case.leaves() {
        // After the client has left, the front may still pass on earlier bytes.
        thread::sleep(Duration::from_millis(50));
    }
    door.engine.wait_until_done();
    let mut wrongs = std::mem::take(&mut got.wrongs);
    let mut places = None;
    if let Some(table) = table {
        if !returns_to_zero(table) {
            wrongs.push("the count does not return to zero".to_owned());
        }
        places = at_start.zip(admitted()).map(|(start, end)| end - start);
    }
    let seen = door.engine.end();
    let observed = Observed {
        client: client_got(&got),
        engine: engine_got(&seen),
        places,
    };
    if kind == Kind::Ours {
        let host = door.engine.address.to_string();
        wrongs.extend(wrong_answers(case, &got));
        wrongs.extend(wrong_requests(&seen, &host, places.unwrap_or_default()));
    }
    (observed, wrongs)
}

/// Whether all counts return to zero soon, before the engine ends its connections.
fn returns_to_zero(table: &Table) -> bool {
    let start = Instant::now();
    while headcount_tests::in_flight(table) != [0] {
        if start.elapsed() > Duration::from_secs(20) {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Finds an answer that is short and looks whole, or that two readers may read differently.
fn wrong_answers(case: &Case, got: &Got) -> Vec<String> {
    let mut wrongs = Vec::new();
    for answer in &got.answers {
        let is_of_engine = answer.second_word() == "200" && !is_own(answer);
        let looks_whole = answer.is_whole && is_of_engine && !case.asks_for_head();
        if looks_whole && !answer.body.ends_with(b"end") {
            wrongs.push(format!(
                "a short answer that looks whole: {}",
                answer.body_in_short()
            ));
        }
        let doubts = answer.doubts.iter();
        wrongs.extend(doubts.map(|doubt| format!("an answer with {doubt}")));
    }
    wrongs
}

/// Finds a request that an engine may read as two, or that the table has not counted.
fn wrong_requests(seen: &Seen, host: &str, places: u64) -> Vec<String> {
    let mut wrongs = Vec::new();
    for request in &seen.requests {
        let doubts = request.doubts.iter();
        wrongs.extend(doubts.map(|doubt| format!("a request with {doubt}")));
        if request.all("host") != [host] {
            wrongs.push(format!(
                "a request with the hosts {:?}",
                request.all("host")
            ));
        }
        if request.second_word().contains("smuggled") {
            wrongs.push("a request was taken for two".to_owned());
        }
    }
    if seen.told.contains(&false) {
        wrongs.push("the engine does not learn that its client has left".to_owned());
    }
    for piece in &seen.pieces {
        wrongs.push(format!("an engine got {}", in_short(piece)));
    }
    if seen.answered as u64 > places {
        wrongs.push(format!(
            "an engine answered {} requests of {places}",
            seen.answered
        ));
    }
    wrongs
}

/// Whether an answer is the front's, not the engine's: a page, an error in JSON, or a refusal without a body.
fn is_own(answer: &Message) -> bool {
    let body = answer.body.trim_ascii_start();
    let is_bare = body.is_empty() && matches!(answer.second_word(), "400" | "414" | "431" | "505");
    is_bare || body.starts_with(b"<") || body.starts_with(b"{\"error\"")
}

fn client_got(got: &Got) -> String {
    // A head that is cut before its body may be lost with the connection.
    let shown = (got.answers.iter()).filter(|answer| answer.is_whole || !answer.body.is_empty());
    let mut answers: Vec<_> = shown.map(answer_in_short).collect();
    answers.push(match &got.end {
        End::Left => "left".to_owned(),
        End::Kept => "kept".to_owned(),
        End::Closed => "closed".to_owned(),
        End::Silent => "silent".to_owned(),
        End::Odd(what) => format!("then {what}"),
    });
    answers.join("; ")
}

fn answer_in_short(answer: &Message) -> String {
    let status = answer.second_word();
    if is_own(answer) {
        return format!("{status} of its own");
    }
    let body = match (answer.framing, answer.body.is_empty()) {
        (Framing::None, _) => String::new(),
        (framing, true) => format!(" {framing}"),
        (framing, false) => format!(" {framing} {}", answer.body_in_short()),
    };
    let cut = if answer.is_whole { "" } else { ", cut" };
    // A front may put its own instead.
    let said = |name: &str, value: &str| answer.all(name) == [value];
    let mut without = OF_FRONTS.to_vec();
    without.extend((!said("server", "engine")).then_some("server"));
    without.extend((!said("date", DATE)).then_some("date"));
    format!("{status}{body}{}{cut}", answer.others(&without))
}

/// A date that no front makes itself.
pub(crate) const DATE: &str = "Fri, 01 Jan 1999 00:00:00 GMT";

fn engine_got(seen: &Seen) -> String {
    let mut parts: Vec<_> = seen
        .requests
        .iter()
        .filter(|request| request.second_word() != crate::engine::PROBE)
        .map(request_in_short)
        .collect();
    parts.extend(
        seen.pieces
            .iter()
            .map(|piece| format!("a piece: {}", in_short(piece))),
    );
    let told = |told: &bool| if *told { "told" } else { "not told" }.to_owned();
    parts.extend(seen.told.iter().map(told));
    match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join("; "),
    }
}

fn request_in_short(request: &Message) -> String {
    let start = request.start.trim_end_matches(" HTTP/1.1");
    let start = in_short(start.as_bytes());
    let body = match (request.framing, request.body.is_empty()) {
        (Framing::None, _) => String::new(),
        (framing, false) if request.is_whole => format!(" {framing} {}", request.body_in_short()),
        // Of a cut body, more or less may have come.
        (framing, _) => format!(" {framing}"),
    };
    let cut = if request.is_whole { "" } else { ", cut" };
    let doubts = match request.doubts.as_slice() {
        [] => String::new(),
        doubts => format!(" (!{})", doubts.join(", ")),
    };
    let others = request.others(&OF_FRONTS);
    format!("{}{body}{others}{cut}{doubts}", start.trim_matches('"'))
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", self.client, self.engine)?;
        match self.places {
            Some(places) => write!(f, " | {places}"),
            None => Ok(()),
        }
    }
}

impl Observed {
    /// Reads a line that `Display` has written.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(" | ");
        Some(Self {
            client: parts.next()?.to_owned(),
            engine: parts.next()?.to_owned(),
            places: parts.next().and_then(|places| places.parse().ok()),
        })
    }

    /// Whether it is the recorded one. Of a request that is cut, the engine may have got more, less or nothing.
    pub(crate) fn is_still(&self, recorded: &Self) -> bool {
        let whole = |text: &str| {
            let parts = text
                .split("; ")
                .filter(|part| !part.ends_with(", cut") && *part != "nothing");
            parts.collect::<Vec<_>>().join("; ")
        };
        (&self.client, self.places) == (&recorded.client, recorded.places)
            && whole(&self.engine) == whole(&recorded.engine)
    }

    /// Whether it is the same, but for the number by which a malformed message is refused, and for the framing
    /// by which a body goes to the engine.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let refused = |text: &str| {
            let numbers = ["414", "422", "431", "501", "505"].iter();
            numbers.fold(text.to_owned(), |text, number| {
                text.replace(&format!("{number} of its own"), "400 of its own")
            })
        };
        // A front that holds a body until it is there passes it on with a length.
        let framed = |text: &str| text.replace(" chunked", " length");
        let both = |seen: &Self| Self {
            client: refused(&seen.client),
            engine: framed(&seen.engine),
            places: None,
        };
        both(self).is_still(&both(other))
    }
}
