//! JSON as engines read it that are written in Python: in more encodings, and with more in it than there is in
//! JSON. It is made such that a strict reader finds the same in it.

use std::borrow::Cow;

/// Whether an object may begin here, in whatever encoding.
pub(crate) fn begins_object(body: &[u8]) -> bool {
    let is_passed_over = |byte: &u8| {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        // What is left of other encodings: byte order marks, and the upper bytes of a brace.
        is_space || matches!(byte, 0xEF | 0xBB | 0xBF | 0xFE | 0xFF | 0)
    };
    body.iter().find(|byte| !is_passed_over(byte)) == Some(&b'{')
}

/// The same in UTF-8 without what strict readers refuse: `NaN` and `Infinity` are 0, numbers that are too large
/// are large ones, halves of surrogate pairs a character of as many bytes, control characters in a text spaces.
///
/// What is no JSON for lenient readers either is none for strict ones afterwards.
pub(crate) fn strict(body: &[u8]) -> String {
    let text = decoded(body);
    let mut strict = String::with_capacity(text.len());
    let mut rest = &*text;
    while !rest.is_empty() {
        if let Some(text) = rest.strip_prefix('"') {
            strict.push('"');
            rest = copy_text(text, &mut strict);
        }
        let (between, after) = split_where(rest, |byte| byte == b'"' || is_of_word(byte));
        let (word, after) = split_where(after, |byte| !is_of_word(byte));
        strict.push_str(between);
        strict.push_str(number(word));
        rest = after;
    }
    strict
}

/// Another number for NaN, Infinity, -Infinity and for one that is too large, as 1e999 is: its size is what
/// matters where it is a count.
fn number(word: &str) -> &str {
    let may_be_odd = word.len() > 300 || word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_odd = || word.parse().is_ok_and(|number: f64| !number.is_finite());
    if !may_be_odd || !is_odd() {
        return word;
    }
    match word.bytes().any(|byte| byte.is_ascii_digit()) {
        false => "0",
        true if word.starts_with('-') => "-1e308",
        true => "1e308",
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// A text up to the first of such bytes, which are of ASCII or follow one, and the rest.
fn split_where(text: &str, is_end: impl Fn(u8) -> bool) -> (&str, &str) {
    let length = text.bytes().position(is_end);
    text.split_at(length.unwrap_or(text.len()))
}

/// Copies a text after its first quote, with the last one, and returns what comes behind it.
fn copy_text<'a>(mut rest: &'a str, strict: &mut String) -> &'a str {
    loop {
        let is_special = |byte: u8| matches!(byte, b'"' | b'\\') || byte < b' ';
        let (plain, odd) = split_where(rest, is_special);
        strict.push_str(plain);
        let (copied, length) = match odd.chars().next() {
            None => return odd,
            Some('"') => {
                strict.push('"');
                return &odd[1..];
            }
            Some('\\') => match (unit(odd), odd.get(6..).and_then(unit)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (&odd[..12], 12),
                (Some(0xD800..=0xDFFF), _) => ("\\ufffd", 6),
                _ => {
                    let escaped = odd[1..].chars().next().map_or(0, char::len_utf8);
                    (&odd[..1 + escaped], 1 + escaped)
                }
            },
            Some(_) => (" ", 1),
        };
        strict.push_str(copied);
        rest = &odd[length..];
    }
}

/// The code unit that an escape at the beginning of a text stands for.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// The text of a body, whose encoding Python tells by its first bytes. What stands for no character becomes
/// one of its own.
fn decoded(body: &[u8]) -> Cow<'_, str> {
    match body {
        [0, 0, 0xFE, 0xFF, rest @ ..] => utf_32(rest, u32::from_be_bytes),
        [0xFF, 0xFE, 0, 0, rest @ ..] => utf_32(rest, u32::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        // A brace, a quote or a space in front.
        [0, 0, _, _, ..] => utf_32(body, u32::from_be_bytes),
        [0, _, _, _, ..] => utf_16(body, u16::from_be_bytes),
        [_, 0, 0, 0, ..] => utf_32(body, u32::from_le_bytes),
        [_, 0, _, _, ..] => utf_16(body, u16::from_le_bytes),
        _ => String::from_utf8_lossy(body),
    }
}

fn utf_16(body: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'_, str> {
    let (units, _) = body.as_chunks();
    let text = char::decode_utf16(units.iter().copied().map(unit));
    text.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn utf_32(body: &[u8], unit: fn([u8; 4]) -> u32) -> Cow<'_, str> {
    let (units, _) = body.as_chunks();
    let text = units
        .iter()
        .map(|bytes| char::from_u32(unit(*bytes)).unwrap_or(char::REPLACEMENT_CHARACTER));
    text.collect()
}
