//! Requests and answers, read strictly. Parts that other readers could read differently are noted.

use crate::wire::{Stop, Wire};
use std::fmt;

/// A request or an answer.
#[derive(Debug)]
pub(crate) struct Message {
    /// Request line or status line.
    pub(crate) start: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) framing: Framing,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Whether it ended as its framing says.
    pub(crate) is_whole: bool,
    /// Parts that another reader could read differently.
    pub(crate) doubts: Vec<String>,
}

/// How the end of a body is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    None,
    Length(usize),
    Chunked,
    /// It ends with the connection.
    Close,
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Length(_) => "length",
            Self::Chunked => "chunked",
            Self::Close => "until close",
        })
    }
}

impl Message {
    /// Reads a head, whose body has not been read then.
    pub(crate) fn read_head(wire: &mut Wire) -> Result<Self, Stop> {
        let head = wire.through(b"\r\n\r\n")?;
        let mut doubts = Vec::new();
        let text = String::from_utf8_lossy(&head[..head.len() - 4]).into_owned();
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        if text.contains('\0') || text.replace("\r\n", "").contains(['\r', '\n']) {
            doubts.push("a control character in its head".to_owned());
        }
        let headers = headers(lines, &mut doubts);
        let mut message = Self {
            start,
            headers,
            framing: Framing::None,
            body: Vec::new(),
            trailers: Vec::new(),
            is_whole: false,
            doubts,
        };
        message.framing = message.framing();
        Ok(message)
    }

    /// Returns how the body of a request ends.
    fn framing(&mut self) -> Framing {
        let codings = self.all("transfer-encoding");
        let lengths = self.all("content-length");
        if !codings.is_empty() && !lengths.is_empty() {
            self.doubts
                .push("both Content-Length and Transfer-Encoding".to_owned());
        }
        if lengths.len() > 1 {
            self.doubts.push("two Content-Length".to_owned());
        }
        match (codings.join(", ").as_str(), lengths.first()) {
            ("chunked", _) => Framing::Chunked,
            ("", None) => Framing::None,
            ("", Some(length)) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                Framing::Length(length.parse().unwrap_or(usize::MAX))
            }
            (coding, length) => {
                let length = length.map_or("", String::as_str);
                self.doubts
                    .push(format!("its framing: {coding:?}, {length:?}"));
                Framing::Close
            }
        }
    }

    /// Reads the body that belongs to the head. Why it ended before its end, if it did.
    pub(crate) fn read_body(&mut self, wire: &mut Wire) -> Option<Stop> {
        let stop = match self.framing {
            Framing::None => None,
            Framing::Length(length) => wire.take(length, &mut self.body).err(),
            Framing::Chunked => self.read_chunks(wire).err(),
            Framing::Close => Some(wire.rest(&mut self.body)).filter(|stop| *stop != Stop::Ended),
        };
        self.is_whole = stop.is_none();
        stop
    }

    fn read_chunks(&mut self, wire: &mut Wire) -> Result<(), Stop> {
        loop {
            let line = wire.through(b"\r\n")?;
            let line = String::from_utf8_lossy(&line).into_owned();
            let size = line.split([';', '\r']).next().unwrap_or_default();
            if line.trim_end_matches("\r\n") != size {
                self.doubts.push(format!("the chunk's line {line:?}"));
            }
            let Ok(size) = usize::from_str_radix(size, 16) else {
                self.doubts.push(format!("the chunk's size {line:?}"));
                return Err(Stop::Reset);
            };
            if size == 0 {
                break;
            }
            wire.take(size, &mut self.body)?;
            let mut end = Vec::new();
            wire.take(2, &mut end)?;
            if end != b"\r\n" {
                self.doubts.push(format!("the chunk's end {end:?}"));
                return Err(Stop::Reset);
            }
        }
        let mut trailers = Vec::new();
        loop {
            let line = wire.through(b"\r\n")?;
            if line == b"\r\n" {
                break;
            }
            trailers.push(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned());
        }
        self.trailers = headers(trailers.iter().map(String::as_str), &mut self.doubts);
        Ok(())
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let values = self.headers.iter().filter(|(other, _)| other == name);
        values.map(|(_, value)| value.clone()).collect()
    }

    /// The second word of its first line: the target of a request, the status of an answer.
    pub(crate) fn second_word(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    /// Its body in a few characters.
    pub(crate) fn body_in_short(&self) -> String {
        in_short(&self.body)
    }

    /// Its headers without those of these names, and its trailers.
    pub(crate) fn others(&self, without: &[&str]) -> String {
        let mut kept: Vec<_> = self.headers.iter().collect();
        kept.retain(|(name, _)| !without.contains(&name.as_str()));
        kept.sort_by(|a, b| a.0.cmp(&b.0));
        let mut lines: Vec<_> = kept
            .iter()
            .map(|(name, value)| line("", name, value))
            .collect();
        if lines.len() > 5 {
            lines = vec![format!("{} headers", lines.len())];
        }
        let trailers = self.trailers.iter();
        lines.extend(trailers.map(|(name, value)| line("trailer ", name, value)));
        match lines.is_empty() {
            true => String::new(),
            false => format!(" [{}]", lines.join(", ")),
        }
    }
}

fn line(kind: &str, name: &str, value: &str) -> String {
    let value = in_short(value.as_bytes());
    let bare = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    format!("{kind}{name}: {}", bare.unwrap_or(&value))
}

/// Bytes in a few characters.
pub(crate) fn in_short(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match bytes.len() {
        0..=60 => format!("{text:?}"),
        length => {
            let start: String = text.chars().take(20).collect();
            format!("{start:?}, {length} bytes")
        }
    }
}

fn headers<'a>(
    lines: impl Iterator<Item = &'a str>,
    doubts: &mut Vec<String>,
) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(token) || !line.contains(':') {
            doubts.push(format!("the line {line:?}"));
        }
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    headers
}
