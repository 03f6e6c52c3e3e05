//! The tokens of an answer that is being streamed, as its engine puts them out.

use crate::message::framing;
use crate::route::permits::Permits;
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use serde::Deserialize;
use std::time::{Duration, Instant};

/// How many tokens may be out before the table is told of them, and for how long.
const UNTOLD: u64 = 16;
const UNTOLD_FOR: Duration = Duration::from_millis(100);

/// The output of an answer, and how much of it the table was told of.
#[derive(Debug)]
pub(crate) struct Output {
    events: Events,
    told: u64,
    told_at: Instant,
}

impl Output {
    /// Begins to count the output of an answer with this head, if it is an event stream that can be read.
    pub(crate) fn of(head: &HeaderMap) -> Option<Self> {
        let is_readable = framing::is_event_stream(head) && !head.contains_key(CONTENT_ENCODING);
        is_readable.then(|| Self {
            events: Events::default(),
            told: 0,
            told_at: Instant::now(),
        })
    }

    /// Reads the next part of the answer. Tells the table of the tokens, unless it was told a moment ago.
    pub(crate) fn read(&mut self, part: &[u8], permits: &mut Permits) {
        self.events.read(part);
        let tokens = self.events.tokens;
        if tokens == self.told {
            return;
        }
        let now = Instant::now();
        if tokens.abs_diff(self.told) >= UNTOLD || now - self.told_at >= UNTOLD_FOR {
            permits.set_output(tokens);
            (self.told, self.told_at) = (tokens, now);
        }
    }
}

/// The events of a stream, each of which counts as a token unless one tells how many there are.
#[derive(Debug, Default)]
struct Events {
    tokens: u64,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Whether the event that has not ended has data.
    has_data: bool,
    /// The tokens of the whole answer, as this event tells.
    told: Option<u64>,
}

/// A longer line counts, and is not read.
const LONGEST_LINE: usize = 64 << 10;

/// The part of an event in which engines tell how many tokens they have put out.
#[derive(Deserialize)]
struct Event {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(alias = "output_tokens")]
    completion_tokens: Option<u64>,
}

impl Events {
    fn read(&mut self, part: &[u8]) {
        let mut lines = part.split(|byte| *byte == b'\n');
        // Behind the last newline there is none.
        let rest = lines.next_back().unwrap_or_default();
        for end in lines {
            if self.line.is_empty() {
                self.read_line(end);
            } else {
                self.keep(end);
                let mut line = std::mem::take(&mut self.line);
                self.read_line(&line);
                line.clear();
                self.line = line;
            }
        }
        self.keep(rest);
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LONGEST_LINE - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn read_line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            self.end_event();
        } else if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.trim_ascii();
            self.has_data |= data != b"[DONE]";
            self.told = tokens_told(data).or(self.told);
        }
    }

    fn end_event(&mut self) {
        match self.told.take() {
            Some(tokens) => self.tokens = tokens,
            None => self.tokens += u64::from(self.has_data),
        }
        self.has_data = false;
    }
}

/// Returns the tokens of the answer so far, if an event tells them.
fn tokens_told(data: &[u8]) -> Option<u64> {
    // Few events do, and to look is cheaper than to parse.
    let name = b"_tokens\"";
    if !data.windows(name.len()).any(|part| part == name) {
        return None;
    }
    let event: Event = serde_json::from_slice(data).ok()?;
    event.usage?.completion_tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(parts: &[&[u8]]) -> u64 {
        let mut events = Events::default();
        parts.iter().for_each(|part| events.read(part));
        events.tokens
    }

    const STREAM: &str = "data: {\"choices\":[{\"text\":\" a\"}]}\r\n\r\n\
        : a comment\n\n\
        event: delta\ndata: {\"choices\":[{\"text\":\"completion_tokens\\\"\"}],\"usage\":null}\nid: 7\n\n\
        data:{\"choices\":[],\n\
        data: \"more\":1}\n\n";
    const END: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":40}}\n\n\
        data: [DONE]\n\n";

    #[test]
    fn each_event_with_data_is_a_token() {
        assert_eq!(tokens(&[STREAM.as_bytes()]), 3);
        assert_eq!(tokens(&[b"data: [DONE]\n\n", b"event: ping\n\n"]), 0);
        assert_eq!(tokens(&[b"data: x\n"]), 0, "it has not ended");
    }

    #[test]
    fn an_event_that_tells_the_tokens_corrects_them() {
        let all = format!("{STREAM}{END}");
        assert_eq!(tokens(&[all.as_bytes()]), 40);
        assert_eq!(tokens(&[all.as_bytes(), STREAM.as_bytes()]), 43);
        let other = b"data: {\"usage\":{\"output_tokens\":2}}\n\n";
        assert_eq!(tokens(&[all.as_bytes(), other]), 2);
    }

    #[test]
    fn it_does_not_matter_where_parts_end() {
        let all = format!("{STREAM}{END}{STREAM}");
        let all = all.as_bytes();
        for first in 0..all.len() {
            for second in first..all.len() {
                let parts = [&all[..first], &all[first..second], &all[second..]];
                assert_eq!(tokens(&parts), 43, "{first}, {second}");
            }
        }
        let bytes: Vec<_> = all.chunks(1).collect();
        assert_eq!(tokens(&bytes), 43);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let mut events = Events::default();
        let part = [b'x'; 1000];
        events.read(b"data: ");
        for _ in 0..1000 {
            events.read(&part);
        }
        assert_eq!(events.line.len(), LONGEST_LINE);
        events.read(b"\n\ndata: y\n\n");
        assert_eq!(events.tokens, 2);
    }
}
