//! OpenAI's API as a mock engine has it: chat, completions, models. An answer has as many choices and
//! tokens as the request asks for; other fields are ignored.

use crate::route::answer_count::AnswerCount;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed}; // each number is taken once
use std::time::{SystemTime, UNIX_EPOCH};

const MODEL: &str = "mock";
const WORD: &str = " token";
/// The most choices of an answer: as many sequences as a worker sends to an engine at once.
const MOST_CHOICES: u64 = 16_384;

/// The paths that are answered.
pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const COMPLETIONS: &str = "/v1/completions";
pub(crate) const MODELS: &str = "/v1/models";

#[derive(Debug, Deserialize)]
struct Fields {
    model: Option<String>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "answers")]
    n: u64,
    prompt: Option<Value>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// Reads the number of answers to each prompt, as engines do.
fn answers<'de, D: Deserializer<'de>>(count: D) -> Result<u64, D::Error> {
    AnswerCount.deserialize(count)
}

/// A request.
#[derive(Debug)]
pub(crate) struct MockRequest {
    pub(crate) stream: bool,
    tokens: u64,
    /// The answers to all prompts together.
    choices: u64,
    is_chat: bool,
    wants_usage: bool,
    prompt_tokens: u64,
    id: String,
    model: String,
    created: u64,
}

impl MockRequest {
    /// Reads a request to a path. An empty body asks for the defaults.
    pub(crate) fn read(path: &str, body: &[u8]) -> serde_json::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let fields: Fields = match body {
            [] => serde_json::from_slice(b"{}")?,
            body => serde_json::from_slice(body)?,
        };
        let is_chat = path == CHAT;
        let prompts = match &fields.prompt {
            // A list of numbers is one prompt, of tokens.
            Some(Value::Array(prompts)) if !is_chat && !prompts.iter().all(Value::is_number) => {
                prompts.len().max(1) as u64
            }
            _ => 1,
        };
        let choices = fields.n.max(1).saturating_mul(prompts);
        if choices > MOST_CHOICES {
            let said =
                format!("the request asks for {choices} answers, and {MOST_CHOICES} are the most");
            return Err(serde_json::Error::custom(said));
        }
        let number = NUMBER.fetch_add(1, Relaxed);
        let id = if is_chat {
            format!("chatcmpl-{number}")
        } else {
            format!("cmpl-{number}")
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            stream: fields.stream,
            tokens: (fields.max_completion_tokens)
                .or(fields.max_tokens)
                .unwrap_or(16),
            choices,
            is_chat,
            wants_usage: fields.stream_options.is_some_and(|o| o.include_usage),
            // A rough guess.
            prompt_tokens: body.len().div_ceil(4) as u64,
            id,
            model: fields.model.unwrap_or_else(|| MODEL.to_owned()),
            created: since.map_or(0, |since| since.as_secs()),
        })
    }

    /// Returns how many tokens to decode.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the answer in one piece.
    pub(crate) fn whole(&self) -> String {
        let text = WORD.repeat(self.tokens as usize);
        let choice = |index| {
            let mut choice = json!({"index": index, "finish_reason": "length", "logprobs": null});
            if self.is_chat {
                choice["message"] = json!({"role": "assistant", "content": text})
            } else {
                choice["text"] = json!(text)
            }
            choice
        };
        let mut answer = self.frame((0..self.choices).map(choice).collect(), false);
        answer["usage"] = self.usage();
        answer.to_string()
    }

    /// Returns the events of one step of a stream: a token of each choice.
    pub(crate) fn piece(&self, number: u64) -> Bytes {
        let events = (0..self.choices).map(|index| self.token(number, index));
        events.collect::<String>().into()
    }

    fn token(&self, number: u64, index: u64) -> String {
        let mut choice = json!({"index": index, "finish_reason": null, "logprobs": null});
        if number + 1 == self.tokens {
            choice["finish_reason"] = json!("length");
        }
        match self.is_chat {
            true if number == 0 => choice["delta"] = json!({"role": "assistant", "content": WORD}),
            true => choice["delta"] = json!({"content": WORD}),
            false => choice["text"] = json!(WORD),
        }
        event(&self.frame(json!([choice]), true))
    }

    /// Returns the events that end a stream.
    pub(crate) fn end(&self) -> impl Iterator<Item = Bytes> {
        let usage = self.wants_usage.then(|| {
            let mut frame = self.frame(json!([]), true);
            frame["usage"] = self.usage();
            Bytes::from(event(&frame))
        });
        (usage.into_iter()).chain([Bytes::from_static(b"data: [DONE]\n\n")])
    }

    fn frame(&self, choices: Value, is_piece: bool) -> Value {
        let object = match (self.is_chat, is_piece) {
            (true, true) => "chat.completion.chunk",
            (true, false) => "chat.completion",
            (false, _) => "text_completion",
        };
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }

    fn usage(&self) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens.saturating_mul(self.choices),
            "total_tokens": (self.tokens.saturating_mul(self.choices)).saturating_add(self.prompt_tokens),
        })
    }
}

fn event(content: &Value) -> String {
    format!("data: {content}\n\n")
}

/// Returns the answer to `MODELS`.
pub(crate) fn models() -> String {
    let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "headcount"});
    json!({"object": "list", "data": [model]}).to_string()
}

/// Returns an error in OpenAI's form.
pub(crate) fn error(message: &str, code: &str) -> String {
    let kind = "invalid_request_error";
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
}
