//! Estimates the work in a request from its body, in the forms that engines know: OpenAI's for completions,
//! chats, responses and embeddings, and those for scores and ranks.
//!
//! The body is read in one pass, without a copy; if a strict reader refuses it, once more as engines in
//! Python read it. No content is an error here, since the engine decides what makes sense; but a prompt
//! that cannot be counted is refused.

use crate::message::error_response::ErrorResponse;
use crate::route::answer_count::AnswerCount;
use crate::route::json;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{fmt, mem};

/// The tokens that an image, audio, a video or a file counts, whatever its size.
pub(crate) const MEDIA_TOKENS: u64 = 1_000;

/// The most lists and objects within one another in a prompt: fewer than the JSON reader allows.
const MOST_LEVELS: u32 = 100;

/// A prompt has more levels, so its content cannot be counted.
const TOO_DEEP: ErrorResponse = ErrorResponse::TooDeep { most: MOST_LEVELS };

/// What an engine will run for a request.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Prompt {
    /// Sequences: the number of prompts, times the answers to each.
    pub(crate) requests: u64,
    /// The tokens of all sequences, the same number for each: one for every four bytes of text, one for
    /// each token id, and [`MEDIA_TOKENS`] for everything else.
    pub(crate) tokens: u64,
    /// The first bytes of the text.
    pub(crate) beginning: Vec<u8>,
}

impl Prompt {
    /// Reads a whole body. A body without a prompt counts all its bytes as text.
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

    /// Estimates a body of this length of which only a part was seen.
    pub(crate) fn unread(seen: &[u8], length: u64, beginning: usize) -> Self {
        Self {
            requests: 1,
            tokens: length.div_ceil(4),
            beginning: seen[..seen.len().min(beginning)].to_vec(),
        }
    }

    /// Estimates a body that is an image, audio or video, or a form with files.
    pub(crate) fn of_media() -> Self {
        Self {
            requests: 1,
            tokens: MEDIA_TOKENS,
            beginning: Vec::new(),
        }
    }
}

/// What was found so far. Of several fields with prompts an engine takes one, which depends on its
/// endpoint; here the most prompts and the greatest length count. Lengths are in quarters of a token.
#[derive(Debug, Default)]
struct Found {
    is_json: bool,
    is_too_deep: bool,
    /// Whether there is a field with prompts.
    has_prompt: bool,
    /// Prompts and length of `prompt` and `input`, and the length of `messages`, to which a chat adds its
    /// documents.
    prompts: u64,
    longest: u64,
    chat: Option<u64>,
    /// Texts that are each compared with the query, how many of them are not objects, and their length.
    pairs: u64,
    pairs_of_texts: u64,
    compared: u64,
    /// The length of the query, which goes with each of these texts.
    query: u64,
    /// Prompts that are given as embeddings, beside the others.
    embedded: u64,
    /// The length so far of the field that is being read.
    length: u64,
    /// Answers to each prompt.
    answers: u64,
    beginning: Vec<u8>,
    /// How many bytes of the beginning may still be kept.
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
        // Beside a chat, texts are for a rank. The documents of a chat are objects, which are parts of its
        // one prompt.
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

    /// Reads the value of a field. Returns its elements and its length.
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
                    let room = mem::take(&mut found.room); // an embedding has no text
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

/// The fields that matter, in a request or in a part of a prompt.
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
    /// An image, audio, a video or a file.
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

/// The elements of a field that may be one prompt, or a list of prompts.
#[derive(Clone, Copy, Debug, Default)]
struct Elements {
    is_null: bool,
    is_list: bool,
    count: u64,
    /// How many elements are texts, or lists themselves.
    texts: u64,
}

impl Elements {
    /// Counts the prompts, if each element of a list is one.
    fn each(self) -> u64 {
        match (self.is_null, self.is_list) {
            (true, _) => 0,
            (_, true) => self.count,
            _ => 1,
        }
    }

    /// Counts the prompts, if only texts and lists are prompts. Numbers are the tokens of one prompt, and
    /// objects its parts.
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
    /// How many lists and objects are around it.
    levels: u32,
    /// Whether it is an element of the list in the field.
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
