//! A body that engines in Python accept as JSON counts as they read it, or is refused.

use crate::deployment::Deployment;
use crate::engine::{odd_engine, read_request};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::io::Read;

/// Starts a deployment in front of an engine that reads requests and does not answer.
pub(crate) fn deployment() -> Deployment {
    let engine = odd_engine(|connection| {
        read_request(connection);
        let _ = connection.read(&mut [0]);
    });
    Deployment::start(&[engine], &["--workers=1", "--policy", "tokens"])
}

fn post(deployment: &Deployment, kind: &str, body: &[u8]) -> Stream {
    let length = body.len();
    let head = format!("POST /a HTTP/1.1\r\nHost: t\r\nContent-Type: {kind}\r\n");
    let mut request = format!("{head}Content-Length: {length}\r\n\r\n").into_bytes();
    request.extend(body);
    Stream::send_bytes(deployment.address, &request)
}

/// Sends a body. Returns the requests and tokens that the table counts for it.
pub(crate) fn counted(deployment: &Deployment, kind: &str, body: &[u8]) -> (u32, u32) {
    let stream = post(deployment, kind, body);
    let counts = || {
        let engine = &deployment.table.view().engines[0];
        (engine.in_flight, engine.tokens)
    };
    // Its places are taken one after the other.
    let mut seen = (0, 0);
    eventually("a count of one", || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let before = std::mem::replace(&mut seen, counts());
        seen.0 > 0 && before == seen
    });
    drop(stream);
    deployment.settles();
    seen
}

#[test]
fn json_as_python_accepts_it_counts_as_python_reads_it() {
    let deployment = deployment();
    for (body, expected) in [
        // Three prompts of eight bytes each.
        (r#""temperature":NaN"#, (3, 6)),
        (
            r#""temperature":Infinity,"a":[-Infinity,{"b":NaN}]"#,
            (3, 6),
        ),
        (r#""a":"NaN \" Infinity","n":2"#, (6, 12)),
        (r#""n":NaN"#, (3, 6)),
        (r#""n":-1e999,"n":Infinity,"n":2"#, (6, 12)),
        (r#""a":1e999,"n":2"#, (6, 12)),
        (r#""\ud800":1,"n":2"#, (6, 12)),
        (r#""\udc00\ud800":"\ud800\\","n":2"#, (6, 12)),
        (r#""\ud83d\ude00":NaN,"n":2"#, (6, 12)),
        ("\"a\":\"\t\0\",\"n\":NaN,\"n\":2", (6, 12)),
        // Numbers as texts.
        (r#""n":"10.0""#, (30, 60)),
        (r#""n":10.0"#, (30, 60)),
        (r#""n":" +1_0 ""#, (30, 60)),
        (r#""n":"1e1""#, (30, 60)),
        (r#""n":"inf""#, (3, 6)),
        (r#""n":"NaN""#, (3, 6)),
        (r#""n":"-10.0""#, (3, 6)),
    ] {
        let prompts = r#"["12345678","12345678","12345678"]"#;
        let body = format!(r#"{{"prompt":{prompts},{body}}}"#);
        let seen = counted(&deployment, "application/json", body.as_bytes());
        assert_eq!(seen, expected, "{body}");
    }
    for (body, expected) in [
        // Three bytes for a half of a pair, as if it were a character.
        (r#"{"prompt":["\ud8001","\udfff1"]}"#, (2, 2)),
        (r#"{"prompt":"\ud83d\ude00","a":NaN}"#, (1, 1)),
        (r#"{"prompt":[[NaN,1],[1e999]]}"#, (2, 4)),
        // The prompts of each kind, with an empty text, as vLLM runs them.
        (r#"{"prompt_embeds":"AAAA"}"#, (1, 1_000)),
        (r#"{"prompt_embeds":["AA","AA","AA"]}"#, (3, 3_000)),
        (r#"{"prompt":"","prompt_embeds":["A","A","A"]}"#, (4, 3_000)),
        (
            r#"{"prompt":null,"prompt_embeds":["A","A"],"n":2}"#,
            (4, 4_000),
        ),
        (
            r#"{"prompt":["1234","1234"],"prompt_embeds":["A","A"]}"#,
            (4, 2_004),
        ),
        (r#"{"prompt_embeds":null,"prompt":"1234"}"#, (1, 1)),
    ] {
        let seen = counted(&deployment, "application/json", body.as_bytes());
        assert_eq!(seen, expected, "{body}");
    }
    let invalid = counted(&deployment, "a/b", b"{\"prompt\":[\"\xff\",\"b\"]}");
    assert_eq!(invalid.0, 2, "{invalid:?}");
    let digits = "9".repeat(400);
    let body = format!(r#"{{"prompt":["a","b"],"seed":{digits},"n":2}}"#);
    assert_eq!(counted(&deployment, "a/b", body.as_bytes()), (4, 4));
    // A body that Python does not read as JSON either: a quarter of its bytes.
    for body in [
        "{\"prompt\":[\"a\",\"b\"],\"n\":2",
        "{'prompt':['a','b']}",
        "NaN",
        "{",
    ] {
        let expected = (1, body.len().div_ceil(4) as u32);
        assert_eq!(
            counted(&deployment, "a/b", body.as_bytes()),
            expected,
            "{body}"
        );
    }
}

#[test]
fn a_number_of_answers_that_is_too_large_for_any_number_is_too_many() {
    let deployment = deployment();
    for count in [
        "9".repeat(309),
        "1".repeat(310),
        "9".repeat(5_000),
        "1e309".to_owned(),
        "1e999".to_owned(),
        format!("{}.5", "1".repeat(310)),
    ] {
        for field in ["n", "best_of"] {
            for count in [count.clone(), format!("\"{count}\"")] {
                let body = format!(r#"{{"prompt":"a","{field}":{count},"n":1}}"#);
                let mut stream = post(&deployment, "application/json", body.as_bytes());
                assert_eq!(stream.status(), 413, "{body}");
            }
        }
    }
    deployment.settles();
}

#[test]
fn json_in_other_encodings_counts_as_what_it_is() {
    let deployment = deployment();
    let body = " {\"prompt\":[\"12345678\",\"12345678\"],\"n\":3}";
    let with_mark = |text: &str| format!("\u{feff}{text}");
    let units = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    };
    let chars = |text: &str, bytes: fn(u32) -> [u8; 4]| -> Vec<u8> {
        text.chars().flat_map(|c| bytes(c.into())).collect()
    };
    let marked = with_mark(body);
    for (encoding, body) in [
        ("UTF-8", marked.clone().into_bytes()),
        ("UTF-16, little", units(body, u16::to_le_bytes)),
        ("UTF-16, big", units(body, u16::to_be_bytes)),
        ("UTF-16, little, marked", units(&marked, u16::to_le_bytes)),
        ("UTF-16, big, marked", units(&marked, u16::to_be_bytes)),
        ("UTF-32, little", chars(body, u32::to_le_bytes)),
        ("UTF-32, big", chars(body, u32::to_be_bytes)),
        ("UTF-32, little, marked", chars(&marked, u32::to_le_bytes)),
        ("UTF-32, big, marked", chars(&marked, u32::to_be_bytes)),
    ] {
        let seen = counted(&deployment, "application/json", &body);
        assert_eq!(seen, (6, 12), "{encoding}");
    }
}

#[test]
fn json_counts_whatever_its_type_says() {
    let deployment = deployment();
    let body = b"\r\n {\"prompt\":[\"12345678\",\"12345678\"]}";
    for kind in [
        "text/plain",
        "audio/wav",
        "image/png",
        "multipart/form-data; boundary=b",
    ] {
        assert_eq!(counted(&deployment, kind, body), (2, 4), "{kind}");
    }
    let form = b"--b\r\n\r\n{\"prompt\":[\"12345678\",\"12345678\"]}\r\n--b--\r\n";
    let seen = counted(&deployment, "multipart/form-data; boundary=b", form);
    assert_eq!(seen, (1, 1_000));
}

#[test]
fn a_prompt_that_is_nested_too_deeply_to_be_counted_is_refused() {
    let deployment = deployment();
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for field in ["prompt", "documents", "query", "prompt_embeds"] {
        let body = format!("{{\"{field}\":{},\"n\":2}}", nested(101));
        let mut stream = post(&deployment, "application/json", body.as_bytes());
        assert_eq!(stream.status(), 400, "{field}");
        let said = String::from_utf8(stream.bytes(120)).unwrap();
        assert!(
            said.contains("lists and objects within one another"),
            "{said}"
        );
    }
    let objects = format!(
        "{{\"prompt\":{}1{}}}",
        "{\"content\":".repeat(101),
        "}".repeat(101)
    );
    assert_eq!(post(&deployment, "a/b", objects.as_bytes()).status(), 400);
    // Fields that are not read may be nested to any depth, and a prompt may have a hundred levels.
    let body = format!("{{\"a\":{},\"prompt\":\"1234\",\"n\":2}}", nested(10_000));
    assert_eq!(counted(&deployment, "a/b", body.as_bytes()), (2, 2));
    let body = format!("{{\"a\":NaN,\"prompt\":{},\"n\":2}}", nested(100));
    assert_eq!(counted(&deployment, "a/b", body.as_bytes()).0, 2);
    deployment.settles();
}
