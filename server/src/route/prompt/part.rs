//! A prompt or a part of one, whatever its nesting.

use crate::route::prompt::fields::{Field, Name};
use crate::route::prompt::{Found, MEDIA_TOKENS, MOST_LEVELS};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The elements of a field that may be one prompt, or a list of prompts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Elements {
    pub(super) is_null: bool,
    is_list: bool,
    count: u64,
    /// How many elements are texts, or lists themselves.
    texts: u64,
}

impl Elements {
    /// Counts the prompts, if each element of a list is one.
    pub(super) fn each(self) -> u64 {
        match (self.is_null, self.is_list) {
            (true, _) => 0,
            (_, true) => self.count,
            _ => 1,
        }
    }

    /// Counts the prompts, if only texts and lists are prompts. Numbers are the tokens of one prompt, and
    /// objects its parts.
    pub(super) fn if_texts(self) -> u64 {
        if self.texts == self.count {
            self.each()
        } else {
            1
        }
    }
}

/// A prompt or a part of one: a text, a token, or a list or an object of parts.
pub(super) struct Part<'a> {
    found: &'a mut Found,
    elements: &'a mut Elements,
    /// How many lists and objects are around it.
    levels: u32,
    /// Whether it is an element of the list in the field.
    is_element: bool,
}

impl<'a> Part<'a> {
    pub(super) fn new(found: &'a mut Found, elements: &'a mut Elements) -> Self {
        Self {
            found,
            elements,
            levels: 0,
            is_element: false,
        }
    }

    /// Returns the reader of a part of this part.
    fn inner(&mut self, is_element: bool) -> Part<'_> {
        Part {
            found: self.found,
            elements: self.elements,
            levels: self.levels + 1,
            is_element,
        }
    }

    fn check_depth<E: Error>(&mut self) -> Result<(), E> {
        self.found.is_too_deep = self.levels >= MOST_LEVELS;
        if self.found.is_too_deep {
            Err(E::custom("nested too deeply"))
        } else {
            Ok(())
        }
    }

    fn count(&mut self, is_text: bool) {
        self.elements.count += u64::from(self.is_element);
        self.elements.texts += u64::from(self.is_element && is_text);
    }

    fn number(mut self, number: impl fmt::Display) {
        self.count(false);
        self.found.lengthen(4);
        if self.found.room > 0 {
            self.found.begin(&format!("{number} "));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, part: D) -> Result<(), D::Error> {
        part.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.count(true);
        self.found.lengthen(text.len() as u64);
        self.found.begin(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_bool<E>(mut self, _: bool) -> Result<(), E> {
        self.count(false);
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.count(false);
        self.elements.is_null |= self.levels == 0;
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut parts: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.count(true);
        let is_field = self.levels == 0;
        self.elements.is_list |= is_field;
        while parts.next_element_seed(self.inner(is_field))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.count(false);
        let mut is_media = false;
        while let Some(name) = fields.next_key_seed(Name)? {
            match name {
                Field::Text => fields.next_value_seed(self.inner(false))?,
                _ => {
                    is_media |= name == Field::Media;
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        if is_media {
            self.found.lengthen(4 * MEDIA_TOKENS);
        }
        Ok(())
    }
}
