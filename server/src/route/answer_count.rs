//! Reads how many answers to each prompt a request asks for, as engines read numbers.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads a number of answers. Engines also take a string or a fraction.
#[derive(Debug)]
pub(crate) struct AnswerCount;

impl<'de> DeserializeSeed<'de> for AnswerCount {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, count: D) -> Result<u64, D::Error> {
        count.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnswerCount {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_u64<E>(self, count: u64) -> Result<u64, E> {
        Ok(count)
    }

    fn visit_i64<E>(self, _: i64) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_f64<E>(self, count: f64) -> Result<u64, E> {
        Ok(count as u64) // saturates: NaN and negative numbers become 0
    }

    fn visit_str<E>(self, count: &str) -> Result<u64, E> {
        // As Python reads numbers: " 10 ", "1_0", "+10", "10.0", "1e1".
        let count = count.trim().replace('_', "");
        // A text without digits ("inf", "nan") is no count for engines.
        let has_digits = count.bytes().any(|byte| byte.is_ascii_digit());
        let fraction = || count.parse().ok().filter(|_: &f64| has_digits);
        Ok((count.parse().ok())
            .or_else(|| fraction().map(|count| count as u64))
            .unwrap_or(1))
    }

    fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<u64, A::Error> {
        while parts.next_element::<IgnoredAny>()?.is_some() {}
        Ok(1)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<u64, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(1)
    }
}
