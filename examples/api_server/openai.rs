//! What a mock engine understands and says of OpenAI's API: chat, completions, models. It answers with as many
//! words as tokens were asked for, and looks at nothing else.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed}; // for numbers that are told apart only
use std::time::{SystemTime, UNIX_EPOCH};

const MODEL: &str = "mock";
const WORD: &str = " token";

#[derive(Debug, Deserialize)]
struct Fields {
    model: Option<String>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) stream: bool,
    tokens: u64,
    is_chat: bool,
    wants_usage: bool,
    prompt_tokens: u64,
    id: String,
    model: String,
    created: u64,
}

impl Asked {
    /// A request to a path. A body of no bytes asks for what is the default.
    pub(crate) fn read(path: &str, body: &[u8]) -> serde_json::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let fields: Fields = match body {
            [] => serde_json::from_slice(b"{}")?,
            body => serde_json::from_slice(body)?,
        };
        let is_chat = path.ends_with("/chat/completions");
        let number = NUMBER.fetch_add(1, Relaxed);
        let id = match is_chat {
            true => format!("chatcmpl-{number}"),
            false => format!("cmpl-{number}"),
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            stream: fields.stream,
            tokens: (fields.max_completion_tokens)
                .or(fields.max_tokens)
                .unwrap_or(16),
            is_chat,
            wants_usage: fields.stream_options.is_some_and(|o| o.include_usage),
            // As good a guess as any.
            prompt_tokens: body.len().div_ceil(4) as u64,
            id,
            model: fields.model.unwrap_or_else(|| MODEL.to_owned()),
            created: since.map_or(0, |since| since.as_secs()),
        })
    }

    /// How many it is to decode.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The answer in one piece.
    pub(crate) fn whole(&self) -> String {
        let text = WORD.repeat(self.tokens as usize);
        let mut choice = json!({"index": 0, "finish_reason": "length", "logprobs": null});
        match self.is_chat {
            true => choice["message"] = json!({"role": "assistant", "content": text}),
            false => choice["text"] = json!(text),
        }
        let mut answer = self.frame(json!([choice]), false);
        answer["usage"] = self.usage();
        answer.to_string()
    }

    /// The event of a token of a stream.
    pub(crate) fn piece(&self, number: u64) -> Bytes {
        let mut choice = json!({"index": 0, "finish_reason": null, "logprobs": null});
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

    /// The events that end a stream.
    pub(crate) fn end(&self) -> impl Iterator<Item = Bytes> {
        let usage = self.wants_usage.then(|| {
            let mut frame = self.frame(json!([]), true);
            frame["usage"] = self.usage();
            event(&frame)
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
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        })
    }
}

fn event(content: &Value) -> Bytes {
    Bytes::from(format!("data: {content}\n\n"))
}

/// The answer to `/v1/models`.
pub(crate) fn models() -> String {
    let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "headcount"});
    json!({"object": "list", "data": [model]}).to_string()
}
