//! Mock engines have as much of OpenAI's API as its clients need.

use crate::deployment::{Deployment, agent};
use crate::engine::{MockEngine, addresses};
use serde_json::{Value, json};

fn post(deployment: &Deployment, path: &str, body: &Value) -> String {
    let sent = agent().post(deployment.url(path)).send(body.to_string());
    let mut answer = sent.unwrap();
    assert_eq!(answer.status(), 200);
    answer.body_mut().read_to_string().unwrap()
}

/// The events of a stream, without the one that ends it.
fn events(text: &str) -> Vec<Value> {
    let events: Vec<_> = (text.split("\n\n").filter(|event| !event.is_empty()))
        .map(|event| event.strip_prefix("data: ").unwrap())
        .collect();
    let (end, events) = events.split_last().unwrap();
    assert_eq!(*end, "[DONE]");
    (events
        .iter()
        .map(|event| serde_json::from_str(event).unwrap()))
    .collect()
}

#[test]
fn chat_is_answered_in_the_form_of_chat() {
    let engines = MockEngine::several(1, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &["--workers=1"]);
    let path = "/v1/chat/completions";
    let messages = json!([{"role": "user", "content": "hello"}]);
    let asked = json!({"model": "mock", "messages": messages, "max_tokens": 3});
    let answer: Value = serde_json::from_str(&post(&deployment, path, &asked)).unwrap();
    assert_eq!(answer["object"], "chat.completion");
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(choice["message"]["content"], " token token token");
    assert_eq!(choice["finish_reason"], "length");
    assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(answer["created"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(answer["usage"]["completion_tokens"], 3);

    let asked = json!({"messages": messages, "max_completion_tokens": 3, "stream": true,
                       "stream_options": {"include_usage": true}});
    let events = events(&post(&deployment, path, &asked));
    assert_eq!(events.len(), 4);
    let deltas = events.iter().map(|e| &e["choices"][0]["delta"]["content"]);
    assert_eq!(deltas.filter(|content| content.is_string()).count(), 3);
    assert_eq!(events[0]["object"], "chat.completion.chunk");
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events[1]["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(events[2]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[3]["usage"]["completion_tokens"], 3);
    assert!(events.iter().all(|event| event["id"] == events[0]["id"]));
}

#[test]
fn completions_have_all_fields_and_models_are_listed() {
    let engines = MockEngine::several(1, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &["--workers=1"]);
    let path = "/v1/completions";
    let asked = json!({"model": "m", "prompt": "hello", "max_tokens": 2});
    let answer: Value = serde_json::from_str(&post(&deployment, path, &asked)).unwrap();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["model"], "m");
    assert_eq!(answer["choices"][0]["text"], " token token");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert!(answer["id"].is_string() && answer["created"].is_u64());
    assert_eq!(answer["usage"]["completion_tokens"], 2);
    let asked = json!({"prompt": "hello", "max_tokens": 2, "stream": true});
    let events = events(&post(&deployment, path, &asked));
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|e| e["choices"][0]["text"] == " token"));

    let mut models = agent().get(deployment.url("/v1/models")).call().unwrap();
    let models = models.body_mut().read_to_string().unwrap();
    let models: Value = serde_json::from_str(&models).unwrap();
    assert_eq!(models["data"][0]["id"], "mock");
}

#[test]
fn each_prompt_has_as_many_answers_as_were_asked_for() {
    let engines = MockEngine::several(1, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &["--workers=1"]);
    let indices = |choices: Vec<&Value>| -> Vec<u64> {
        (choices
            .iter()
            .map(|choice| choice["index"].as_u64().unwrap()))
        .collect()
    };
    for (path, asked, expected) in [
        (
            "/v1/completions",
            json!({"prompt": "a", "n": 2, "max_tokens": 3}),
            2,
        ),
        (
            "/v1/completions",
            json!({"prompt": ["a", "b"], "n": 2, "max_tokens": 3}),
            4,
        ),
        (
            "/v1/completions",
            json!({"prompt": [1, 2, 3], "max_tokens": 3}),
            1,
        ),
        (
            "/v1/chat/completions",
            json!({"messages": [], "n": 3, "max_tokens": 3}),
            3,
        ),
        // The server counts the same.
        (
            "/v1/completions",
            json!({"prompt": ["a", "b"], "n": "3", "max_tokens": 3}),
            6,
        ),
        (
            "/v1/chat/completions",
            json!({"messages": [], "n": 2.0, "max_tokens": 3}),
            2,
        ),
        (
            "/v1/completions",
            json!({"prompt": "a", "n": null, "max_tokens": 3}),
            1,
        ),
        (
            "/v1/completions",
            json!({"prompt": "a", "n": 200, "max_tokens": 3}),
            200,
        ),
    ] {
        let all: Vec<u64> = (0..expected).collect();
        let answer: Value = serde_json::from_str(&post(&deployment, path, &asked)).unwrap();
        assert_eq!(
            indices(answer["choices"].as_array().unwrap().iter().collect()),
            all
        );
        assert_eq!(answer["usage"]["completion_tokens"], 3 * expected);
        let mut streamed = asked.clone();
        streamed["stream"] = json!(true);
        let events = events(&post(&deployment, path, &streamed));
        assert_eq!(events.len() as u64, 3 * expected);
        let last = &events[events.len() - all.len()..];
        let choices: Vec<_> = last.iter().map(|event| &event["choices"][0]).collect();
        assert!(
            choices
                .iter()
                .all(|choice| choice["finish_reason"] == "length")
        );
        assert_eq!(indices(choices), all);
    }
}

#[test]
fn more_answers_than_a_mock_engine_gives_are_refused() {
    let engine = MockEngine::start("0.001");
    let url = format!("http://{}/v1/completions", engine.address);
    for asked in [
        json!({"prompt": "a", "n": 16_385}),
        json!({"prompt": ["a", "b"], "n": "10000"}),
    ] {
        let mut answer = agent().post(&url).send(asked.to_string()).unwrap();
        assert_eq!(answer.status(), 400);
        let said = answer.body_mut().read_to_string().unwrap();
        assert!(said.contains("16384 are the most"), "{said}");
    }
}

#[test]
fn an_unknown_path_of_a_mock_engine_is_404() {
    let engines = MockEngine::several(1, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &["--workers=1"]);
    for path in [
        "/",
        "/nope",
        "/v1/embeddings",
        "//health",
        "/v1/completions/",
        "/x/chat/completions",
    ] {
        let mut answer = agent().post(deployment.url(path)).send("{}").unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        let said = answer.body_mut().read_to_string().unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["error"]["code"], "not_found");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(path) && message.contains("/v1/chat/completions"),
            "{message}"
        );
    }
}
