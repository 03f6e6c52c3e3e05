//! The fields of a request that say how much an engine will run.

use crate::route::answer_count::AnswerCount;
use crate::route::prompt::Found;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::{fmt, mem};

/// The fields of a request.
pub(super) struct Fields<'a>(pub(super) &'a mut Found);

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
pub(super) enum Field {
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

/// Reads the name of a field.
pub(super) struct Name;

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
