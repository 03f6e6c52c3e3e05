//! Estimates the work in a request from its body, in the forms that engines know: OpenAI's for completions,
//! chats, responses and embeddings, and those for scores and ranks.
//!
//! The body is read in one pass, without a copy; if a strict reader refuses it, once more as engines in
//! Python read it. No content is an error here, since the engine decides what makes sense; but a prompt
//! that cannot be counted is refused.

mod fields;
mod part;

use crate::message::error_response::ErrorResponse;
use crate::route::json;
use crate::route::prompt::fields::Fields;
use crate::route::prompt::part::{Elements, Part};
use serde::de::{Deserializer, MapAccess};

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
        Ok(if found.is_json && found.has_prompt {
            found.prompt()
        } else {
            Self::unread(body, body.len() as u64, beginning)
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
