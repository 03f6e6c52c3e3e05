//! What can be told of a prompt from the body of its request.

use serde_json::Value;

/// The prompt of a completion or of a chat, in OpenAI's form: how long it is and how it begins.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct Prompt {
    /// A token for every four bytes of text, or as many as there are if they are given by number.
    pub(crate) tokens: u32,
    /// Its first bytes.
    pub(crate) beginning: Vec<u8>,
}

impl Prompt {
    /// Reads a body of `length` bytes in all, of which `seen` are there. What is not known as a
    /// prompt counts, and begins, with all its bytes.
    pub(crate) fn read(seen: &[u8], length: u64, beginning: usize) -> Self {
        let mut prompt = Self::default();
        let mut bytes = 0;
        let whole = seen.len() as u64 == length;
        let body: Option<Value> = whole.then(|| serde_json::from_slice(seen).ok()).flatten();
        let parts = ["prompt", "messages", "input"];
        let found = body
            .as_ref()
            .and_then(|b| parts.iter().find_map(|part| b.get(part)));
        match found {
            Some(found) => prompt.add(found, beginning, &mut bytes),
            None => {
                bytes = length;
                prompt.beginning = seen[..seen.len().min(beginning)].to_vec();
            }
        }
        let of_text = u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX);
        prompt.tokens = prompt.tokens.saturating_add(of_text);
        prompt
    }

    fn add(&mut self, part: &Value, beginning: usize, bytes: &mut u64) {
        match part {
            Value::String(text) => {
                *bytes += text.len() as u64;
                let room = beginning.saturating_sub(self.beginning.len());
                self.beginning.extend(text.bytes().take(room));
            }
            Value::Number(token) => {
                self.tokens = self.tokens.saturating_add(1);
                let room = beginning.saturating_sub(self.beginning.len());
                self.beginning
                    .extend(token.to_string().bytes().chain([b' ']).take(room));
            }
            Value::Array(parts) => parts.iter().for_each(|p| self.add(p, beginning, bytes)),
            // A message, or a part of one: its text is what the engine gets to read.
            Value::Object(fields) => {
                for field in ["content", "text"] {
                    if let Some(text) = fields.get(field) {
                        self.add(text, beginning, bytes);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}
