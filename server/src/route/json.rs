//! JSON as engines in Python read it: in more encodings, and with more values than JSON has. This module
//! rewrites such a body so that a strict reader finds the same in it.

use std::borrow::Cow;

/// Whether a body may begin with an object, in any encoding.
pub(crate) fn begins_object(body: &[u8]) -> bool {
    let is_passed_over = |byte: &u8| {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        // Bytes of other encodings: byte order marks, and the zeros beside a brace.
        is_space || matches!(byte, 0xEF | 0xBB | 0xBF | 0xFE | 0xFF | 0)
    };
    body.iter().find(|byte| !is_passed_over(byte)) == Some(&b'{')
}

/// Rewrites a body as UTF-8 without what strict readers refuse: `NaN` and `Infinity` become 0, numbers that
/// are too large become large ones, halves of surrogate pairs a character of as many bytes, control
/// characters in a text spaces.
///
/// A body that lenient readers refuse stays invalid for strict ones.
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

/// Replaces NaN, Infinity, -Infinity and numbers that are too large (1e999), of which the size matters in a count.
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

/// Splits a text before the first byte that matches. Such bytes are ASCII, or follow an ASCII byte.
fn split_where(text: &str, is_end: impl Fn(u8) -> bool) -> (&str, &str) {
    let length = text.bytes().position(is_end);
    text.split_at(length.unwrap_or(text.len()))
}

/// Copies a string, from behind its first quote to its last one, and returns the rest.
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

/// Returns the code unit of an escape at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Decodes a body, whose encoding Python tells by the first bytes. Invalid sequences become replacement
/// characters.
fn decoded(body: &[u8]) -> Cow<'_, str> {
    match body {
        [0, 0, 0xFE, 0xFF, rest @ ..] => utf_32(rest, u32::from_be_bytes),
        [0xFF, 0xFE, 0, 0, rest @ ..] => utf_32(rest, u32::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        // The first character is a brace, a quote or a space.
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
