//! What can be told of the work in a request from its body, in the forms that engines know: OpenAI's for
//! completions, chats, responses and embeddings, and those for scores and ranks.
//!
//! The body is read in one pass, without being copied; if it is none for a strict reader, once more as engines
//! in Python take it. Nothing in it is an error here, for whether a request makes sense is for the engine to
//! say; but what could not be counted is refused.

use crate::json;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The tokens that a picture, a sound, a film or a file counts, whatever its size.
pub(crate) const MEDIA_TOKENS: u64 = 1_000;

/// The most lists and objects within one another in a prompt: less than the reader of JSON stands.
pub(crate) const MOST_LEVELS: u32 = 100;

/// A prompt has more of them, so it is not known what is in it.
#[derive(Debug)]
pub(crate) struct TooDeep;

/// What an engine will run for a request.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Prompt {
    /// Sequences: the prompts, times the answers to each.
    pub(crate) requests: u64,
    /// Their tokens: for all of them, one for every four bytes of text, as many as there are of those that
    /// are given by number, and [`MEDIA_TOKENS`] for all else.
    pub(crate) tokens: u64,
    /// The first bytes of its text.
    pub(crate) beginning: Vec<u8>,
}

impl Prompt {
    /// Of a body that is there whole. One in which no prompt is found counts, and begins, with all its
    /// bytes.
    pub(crate) fn read(body: &[u8], beginning: usize) -> Result<Self, TooDeep> {
        let mut found = Found::read(body, beginning);
        if !found.is_json && json::begins_object(body) {
            found = Found::read(json::strict(body).as_bytes(), beginning);
        }
        if found.is_too_deep {
            return Err(TooDeep);
        }
        Ok(match found.is_json && found.has_prompt() {
            true => found.prompt(),
            false => Self::unread(body, body.len() as u64, beginning),
        })
    }

    /// Of a body of so many bytes that is not read.
    pub(crate) fn unread(seen: &[u8], length: u64, beginning: usize) -> Self {
        Self {
            requests: 1,
            tokens: length.div_ceil(4),
            beginning: seen[..seen.len().min(beginning)].to_vec(),
        }
    }

    /// Of a body that is a picture, a sound or a film, or a form with files.
    pub(crate) fn of_media() -> Self {
        Self {
            requests: 1,
            tokens: MEDIA_TOKENS,
            beginning: Vec::new(),
        }
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    is_json: bool,
    is_too_deep: bool,
    prompts: Option<u64>,
    /// Prompts that are given as what a model makes of them, beside the others.
    embedded: u64,
    /// Texts that are compared with another one each. Beside a prompt they are parts of it.
    pairs: Option<u64>,
    /// Of all these: bytes of text, tokens that are given by number, and other things.
    bytes: u64,
    numbers: u64,
    media: u64,
    /// Bytes of text that go with each prompt: the question to which documents are ranked.
    bytes_of_each: u64,
    /// Answers to each prompt.
    answers: u64,
    beginning: Vec<u8>,
    /// Bytes that may still be kept of the beginning.
    room: usize,
}

impl Found {
    fn read(body: &[u8], beginning: usize) -> Self {
        let mut found = Self {
            room: beginning,
            ..Self::default()
        };
        let mut json = serde_json::Deserializer::from_slice(body);
        let read = (&mut json).deserialize_map(Fields(&mut found));
        found.is_json = read.and_then(|()| json.end()).is_ok();
        found
    }

    fn has_prompt(&self) -> bool {
        self.prompts.or(self.pairs).is_some() || self.embedded > 0
    }

    fn prompt(self) -> Prompt {
        let mut prompts = self.prompts.or(self.pairs).unwrap_or_default();
        // One that is empty is none beside those.
        let is_one = self.embedded == 0 || self.bytes + self.numbers + self.media > 0;
        prompts = prompts.max(is_one.into()).saturating_add(self.embedded);
        let text = (self.bytes).saturating_add(self.bytes_of_each.saturating_mul(prompts));
        let media = (self.media.saturating_add(self.embedded)).saturating_mul(MEDIA_TOKENS);
        let tokens = (text.div_ceil(4).saturating_add(self.numbers)).saturating_add(media);
        let answers = self.answers.max(1);
        Prompt {
            requests: prompts.saturating_mul(answers),
            tokens: tokens.saturating_mul(answers),
            beginning: self.beginning,
        }
    }

    fn begin(&mut self, text: &str) {
        let kept = text.len().min(self.room);
        self.room -= kept;
        self.beginning.extend(&text.as_bytes()[..kept]);
    }
}

/// The fields of a request.
struct Fields<'a>(&'a mut Found);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(found) = self;
        while let Some(name) = map.next_key_seed(Name)? {
            let mut prompts = 0;
            match name {
                Field::Prompt => {
                    map.next_value_seed(Part::new(found, &mut prompts, Several::IfTexts))?;
                    found.prompts = found.prompts.max(Some(prompts));
                }
                Field::Embedded => {
                    let mut own = Found::default();
                    let part = Part::new(&mut own, &mut prompts, Several::IfTexts);
                    let read = map.next_value_seed(part);
                    found.is_too_deep = own.is_too_deep;
                    read?;
                    let is_one = own.bytes + own.numbers + own.media > 0;
                    found.embedded = found.embedded.max(prompts.max(is_one.into()));
                }
                Field::Documents => {
                    map.next_value_seed(Part::new(found, &mut prompts, Several::Always))?;
                    found.pairs = found.pairs.max(Some(prompts));
                }
                Field::Query => {
                    let bytes = found.bytes;
                    map.next_value_seed(Part::new(found, &mut prompts, Several::Never))?;
                    found.bytes_of_each += found.bytes - bytes;
                    found.bytes = bytes;
                }
                Field::Answers => {
                    found.answers = found.answers.max(map.next_value_seed(Count)?);
                }
                Field::Text | Field::Media | Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Names of fields that matter, in a request or in a part of a prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Prompt,
    Embedded,
    Documents,
    Query,
    Answers,
    /// The text of a message, or of a part of it.
    Text,
    /// What is not text.
    Media,
    Other,
}

struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Field, D::Error> {
        name.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            "prompt" | "messages" | "input" => Field::Prompt,
            "prompt_embeds" => Field::Embedded,
            "documents" | "text_2" => Field::Documents,
            "query" | "text_1" => Field::Query,
            "n" | "best_of" => Field::Answers,
            "content" | "text" => Field::Text,
            "image_url" | "image" | "image_embeds" | "input_audio" | "audio_url" | "audio"
            | "audio_embeds" | "video_url" | "video" | "file" | "file_data" | "file_url"
            | "file_id" | "source" => Field::Media,
            _ => Field::Other,
        })
    }
}

/// When the elements of a list are prompts of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Several {
    Always,
    /// Each that is a text, or a list itself. Numbers are the tokens of one prompt, and objects its parts.
    IfTexts,
    Never,
}

/// A prompt or a part of one: a text, a token, or a list or an object of parts.
struct Part<'a> {
    found: &'a mut Found,
    prompts: &'a mut u64,
    several: Several,
    /// Whether it is an element of a list of prompts.
    is_element: bool,
    /// Lists and objects around it.
    levels: u32,
}

impl<'a> Part<'a> {
    fn new(found: &'a mut Found, prompts: &'a mut u64, several: Several) -> Self {
        Self {
            found,
            prompts,
            several,
            is_element: false,
            levels: 0,
        }
    }

    /// A part of this one that is no list of prompts.
    fn inner(&mut self) -> Part<'_> {
        Part {
            levels: self.levels + 1,
            ..Part::new(self.found, self.prompts, Several::Never)
        }
    }

    fn element(&mut self) -> Part<'_> {
        Part {
            is_element: true,
            levels: self.levels + 1,
            ..Part::new(self.found, self.prompts, self.several)
        }
    }

    fn check_depth<E: Error>(&mut self) -> Result<(), E> {
        self.found.is_too_deep = self.levels >= MOST_LEVELS;
        match self.found.is_too_deep {
            true => Err(E::custom("nested too deeply")),
            false => Ok(()),
        }
    }

    /// Counts it as a prompt of its own, if it is one.
    fn count(&mut self, is_text: bool) {
        let counts = match self.several {
            Several::Always => true,
            Several::IfTexts => is_text,
            Several::Never => false,
        };
        *self.prompts += u64::from(self.is_element && counts);
    }

    fn number(mut self, number: impl fmt::Display) {
        self.count(false);
        self.found.numbers += 1;
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
        self.found.bytes += text.len() as u64;
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

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut parts: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.count(true);
        loop {
            let part = match self.is_element {
                // Those of a prompt among several are its own parts.
                true => self.inner(),
                false => self.element(),
            };
            if parts.next_element_seed(part)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.count(false);
        let mut is_media = false;
        while let Some(name) = fields.next_key_seed(Name)? {
            match name {
                Field::Text => fields.next_value_seed(self.inner())?,
                _ => {
                    is_media |= name == Field::Media;
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.found.media += u64::from(is_media);
        Ok(())
    }
}

/// A number of answers. Engines take one that is written as a text or as a fraction, too.
struct Count;

impl<'de> DeserializeSeed<'de> for Count {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, count: D) -> Result<u64, D::Error> {
        count.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count {
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
        Ok(count as u64) // one that is no count becomes the nearest that is
    }

    fn visit_str<E>(self, count: &str) -> Result<u64, E> {
        // As Python reads numbers: " 10 ", "1_0", "+10", "10.0", "1e1".
        let count = count.trim().replace('_', "");
        let fraction = || count.parse().ok().filter(|count: &f64| count.is_finite());
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
