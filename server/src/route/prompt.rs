//! What can be told of the work in a request from its body, in the forms that engines know: OpenAI's for
//! completions, chats, responses and embeddings, and those for scores and ranks.
//!
//! The body is read in one pass, without being copied; if it is none for a strict reader, once more as engines
//! in Python take it. Nothing in it is an error here, for whether a request makes sense is for the engine to
//! say; but what could not be counted is refused.

use crate::message::error_response::ErrorResponse;
use crate::route::answer_count::AnswerCount;
use crate::route::json;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{fmt, mem};

/// The tokens that a picture, a sound, a film or a file counts, whatever its size.
pub(crate) const MEDIA_TOKENS: u64 = 1_000;

/// The most lists and objects within one another in a prompt: less than the reader of JSON stands.
const MOST_LEVELS: u32 = 100;

/// A prompt has more levels, so its content cannot be counted.
const TOO_DEEP: ErrorResponse = ErrorResponse::TooDeep { most: MOST_LEVELS };

/// What an engine will run for a request.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Prompt {
    /// Sequences: the prompts, times the answers to each.
    pub(crate) requests: u64,
    /// Their tokens, as many for each: one for every four bytes of text, as many as there are of those that
    /// are given by number, and [`MEDIA_TOKENS`] for all else.
    pub(crate) tokens: u64,
    /// The first bytes of its text.
    pub(crate) beginning: Vec<u8>,
}

impl Prompt {
    /// Of a body that is there whole. One in which no prompt is found counts, and begins, with all its
    /// bytes.
    pub(crate) fn read(body: &[u8], beginning: usize) -> Result<Self, ErrorResponse> {
        let mut found = Found::read(body, beginning);
        if !found.is_json && json::begins_object(body) {
            found = Found::read(json::strict(body).as_bytes(), beginning);
        }
        if found.is_too_deep {
            return Err(TOO_DEEP);
        }
        Ok(match found.is_json && found.has_prompt {
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

/// What was found so far. An engine takes one field that has prompts, and which one is its endpoint's: the most
/// prompts and the longest count. Lengths are in quarters of a token.
#[derive(Debug, Default)]
struct Found {
    is_json: bool,
    is_too_deep: bool,
    /// Whether there is a field that has prompts.
    has_prompt: bool,
    /// Of `prompt` and `input`, and of `messages`, to which a chat adds its documents.
    prompts: u64,
    longest: u64,
    chat: Option<u64>,
    /// Texts that are compared with another one each, how many if they are no objects, and their length.
    pairs: u64,
    pairs_of_texts: u64,
    compared: u64,
    /// The length of the other one, which goes with each of them.
    query: u64,
    /// Prompts that are given as what a model makes of them, beside the others.
    embedded: u64,
    /// The length of the field that is being read.
    length: u64,
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

    fn prompt(self) -> Prompt {
        // Texts beside a chat are for a rank, since those of a chat are objects: parts of its one prompt.
        let pairs = match self.chat {
            Some(_) => self.pairs_of_texts,
            None => self.pairs,
        };
        let prompts = self.prompts.max(pairs).saturating_add(self.embedded).max(1);
        let chat = self.chat.map_or(0, |it| it.saturating_add(self.compared));
        let ranked = (self.query.saturating_mul(pairs)).saturating_add(self.compared);
        let embedded = self.embedded.saturating_mul(4 * MEDIA_TOKENS);
        let length = self.longest.max(chat).max(ranked).saturating_add(embedded);
        let of_each = length.div_ceil(prompts.saturating_mul(4));
        let requests = prompts.saturating_mul(self.answers.max(1));
        Prompt {
            requests,
            tokens: of_each.saturating_mul(requests),
            beginning: self.beginning,
        }
    }

    /// Reads the value of a field: what it holds, and its length.
    fn field<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(Elements, u64), A::Error> {
        self.length = 0;
        let mut elements = Elements::default();
        map.next_value_seed(Part::new(self, &mut elements))?;
        Ok((elements, self.length))
    }

    fn lengthen(&mut self, quarters: u64) {
        self.length = self.length.saturating_add(quarters);
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
            match name {
                Field::Prompt => {
                    let (elements, length) = found.field(&mut map)?;
                    found.has_prompt |= !elements.is_null;
                    found.prompts = found.prompts.max(elements.if_texts());
                    found.longest = found.longest.max(length);
                }
                Field::Chat => {
                    let (elements, length) = found.field(&mut map)?;
                    found.has_prompt |= !elements.is_null;
                    found.prompts = found.prompts.max(elements.if_texts());
                    found.chat = found.chat.max((!elements.is_null).then_some(length));
                }
                Field::Embedded => {
                    let room = mem::take(&mut found.room); // its text is none
                    let read = found.field(&mut map);
                    found.room = room;
                    let (elements, _) = read?;
                    found.has_prompt |= !elements.is_null;
                    found.embedded = found.embedded.max(elements.if_texts());
                }
                Field::Documents => {
                    let (elements, length) = found.field(&mut map)?;
                    found.has_prompt |= !elements.is_null;
                    found.pairs = found.pairs.max(elements.each());
                    found.pairs_of_texts = found.pairs_of_texts.max(elements.if_texts());
                    found.compared = found.compared.max(length);
                }
                Field::Query => {
                    let (_, length) = found.field(&mut map)?;
                    found.query = found.query.max(length);
                }
                Field::Answers => {
                    found.answers = found.answers.max(map.next_value_seed(AnswerCount)?);
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
    Chat,
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
            "prompt" | "input" => Field::Prompt,
            "messages" => Field::Chat,
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

/// What is in a field that may be one prompt, or a list of them.
#[derive(Clone, Copy, Debug, Default)]
struct Elements {
    is_null: bool,
    is_list: bool,
    count: u64,
    /// How many of them are texts, or lists themselves.
    texts: u64,
}

impl Elements {
    /// Prompts, if each element of a list is one.
    fn each(self) -> u64 {
        match (self.is_null, self.is_list) {
            (true, _) => 0,
            (_, true) => self.count,
            _ => 1,
        }
    }

    /// Prompts, if those are texts or lists. Numbers are the tokens of one prompt, and objects its parts.
    fn if_texts(self) -> u64 {
        match self.texts == self.count {
            true => self.each(),
            false => 1,
        }
    }
}

/// A prompt or a part of one: a text, a token, or a list or an object of parts.
struct Part<'a> {
    found: &'a mut Found,
    elements: &'a mut Elements,
    /// Lists and objects around it.
    levels: u32,
    /// Whether it is an element of the list that the field is.
    is_element: bool,
}

impl<'a> Part<'a> {
    fn new(found: &'a mut Found, elements: &'a mut Elements) -> Self {
        Self {
            found,
            elements,
            levels: 0,
            is_element: false,
        }
    }

    /// A part of this one.
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
        match self.found.is_too_deep {
            true => Err(E::custom("nested too deeply")),
            false => Ok(()),
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
