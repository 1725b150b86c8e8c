//! Tries the decoder on hand-written streams.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::wire::fixtures::{read, read_and_hang};

const CONTENT: &str = concat!(
    ": processing\n\n",
    r#"data: {"id":"c1","model":"gpt-x-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hé"}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"content":"llo 🪢"}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"write","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"a.txt\"}"}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"ls","arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
);

const TRAILER: &str = concat!(
    r#"data: {"id":"c1","choices":[],"usage":{"prompt_tokens":15,"completion_tokens":42,"prompt_tokens_details":{"cached_tokens":5}}}"#,
    "\n\ndata: [DONE]\n\n",
);

fn decoder() -> Completion {
    Completion::new("asked".to_owned())
}

fn counted() -> Usage {
    Usage {
        input_tokens: 10,
        output_tokens: 42,
        cache_read_tokens: 5,
        cache_write_tokens: 0,
    }
}

fn whole(usage: Usage) -> Reply {
    Reply {
        blocks: vec![
            Block::Text("Héllo 🪢".to_owned()),
            Block::ToolUse(ToolUse::parse("call_a", "write", r#"{"path":"a.txt"}"#)),
            Block::ToolUse(ToolUse::parse("call_b", "ls", "{}")),
        ],
        stop: StopReason::ToolUse,
        usage,
        model: "gpt-x-2026".to_owned(),
    }
}

fn started(id: &str, name: &str) -> Delta {
    Delta::ToolUseStarted {
        id: id.to_owned(),
        name: name.to_owned(),
    }
}

#[tokio::test]
async fn a_whole_stream_is_read_however_it_is_cut_into_packets() {
    let stream = format!("{CONTENT}{TRAILER}");
    for piece in [1, 2, 3, 7, 64, stream.len()] {
        let (deltas, reply) = read(stream.as_bytes(), piece, decoder()).await;
        assert_eq!(reply, Ok(whole(counted())), "pieces of {piece}");
        assert_eq!(
            deltas,
            [
                Delta::Text("Hé".to_owned()),
                Delta::Text("llo 🪢".to_owned()),
                started("call_a", "write"),
                Delta::ToolUse(ToolUse::parse("call_a", "write", r#"{"path":"a.txt"}"#)),
                started("call_b", "ls"),
                Delta::ToolUse(ToolUse::parse("call_b", "ls", "{}")),
                Delta::Usage(counted()),
            ]
        );
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_before_its_reason_never_completes() {
    for cut in 0..CONTENT.len() {
        let (_, reply) = read(&CONTENT.as_bytes()[..cut], 64, decoder()).await;
        assert_eq!(reply, Err(ModelError::Truncated), "cut at byte {cut}");
    }
}

#[tokio::test]
async fn a_stream_cut_after_its_reason_has_all_content() {
    let stream = format!("{CONTENT}{TRAILER}");
    for cut in CONTENT.len()..stream.len() {
        let (_, reply) = read(&stream.as_bytes()[..cut], 64, decoder()).await;
        let reply = reply.unwrap();
        assert_eq!(reply, whole(reply.usage), "cut at byte {cut}");
    }
}

#[tokio::test]
async fn a_terminator_without_a_reason_is_a_truncation() {
    let (_, reply) = read(b"data: [DONE]\n\n", 64, decoder()).await;
    assert_eq!(reply, Err(ModelError::Truncated));
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_after_the_reason_costs_seconds_and_no_content() {
    let began = tokio::time::Instant::now();
    let reply = read_and_hang(CONTENT.as_bytes(), decoder(), CancellationToken::new()).await;
    assert_eq!(reply, Ok(whole(Usage::default())));
    assert!(began.elapsed().as_secs() <= 5);
}

#[tokio::test]
async fn an_error_chunk_fails_the_reply() {
    let failed = concat!(
        r#"data: {"error":{"message":"the engine died","type":"server_error","code":null}}"#,
        "\n\ndata: [DONE]\n\n",
    );
    let (_, reply) = read(failed.as_bytes(), 64, decoder()).await;
    assert_eq!(
        reply,
        Err(ModelError::Overloaded {
            status: 500,
            message: "the engine died".to_owned(),
            retry_after: None
        })
    );
}

/// Returns the calls of a reply whose `tool_calls` came as these parts.
async fn calls(parts: &[Value], reason: &str) -> (Vec<ToolUse>, StopReason) {
    let end = json!({ "choices": [{ "delta": null, "finish_reason": reason }] });
    let stream: String = parts
        .iter()
        .map(|part| json!({ "id": "c9", "choices": [{ "delta": { "tool_calls": [part] } }] }))
        .chain([end, json!("[DONE]")])
        .map(|chunk| format!("data: {chunk}\n\n").replace("\"[DONE]\"", "[DONE]"))
        .collect();
    let (_, reply) = read(stream.as_bytes(), 64, decoder()).await;
    let reply = reply.unwrap();
    (reply.tool_uses().cloned().collect(), reply.stop)
}

#[tokio::test]
async fn calls_are_told_apart_without_proper_indexes_and_ids() {
    let part = |index: Option<u64>, id: Option<&str>, arguments: Value| json!({ "index": index, "id": id, "function": { "name": "ls", "arguments": arguments } });
    let same_index = [
        part(Some(0), Some("a"), json!("{\"n\":1}")),
        part(Some(0), Some("b"), json!("{\"n\":2}")),
    ];
    let nothing = [
        part(None, None, json!({ "n": 1 })),
        part(None, None, json!({ "n": 2 })),
    ];
    let (found, stop) = calls(&same_index, "stop").await;
    assert_eq!(
        found,
        [
            ToolUse::parse("a", "ls", "{\"n\":1}"),
            ToolUse::parse("b", "ls", "{\"n\":2}")
        ]
    );
    assert_eq!(stop, StopReason::ToolUse);
    let (found, _) = calls(&nothing, "tool_calls").await;
    assert_eq!(
        found,
        [
            ToolUse::parse("call_c9_0", "ls", "{\"n\":1}"),
            ToolUse::parse("call_c9_1", "ls", "{\"n\":2}")
        ]
    );
}

#[tokio::test]
async fn a_call_cut_by_the_token_limit_is_malformed() {
    let part = json!({ "index": 0, "id": "a",
        "function": { "name": "write", "arguments": "{\"path\": \"a" } });
    let (found, stop) = calls(&[part], "length").await;
    assert!(found[0].malformed);
    assert_eq!(stop, StopReason::MaxTokens);
}

#[tokio::test]
async fn a_refusal_is_text_that_stops_by_content_filter() {
    let stream = concat!(
        r#"data: {"choices":[{"index":0,"delta":{"refusal":"no"}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "\n\ndata: [DONE]\n\n",
    );
    let (_, reply) = read(stream.as_bytes(), 64, decoder()).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.text(), reply.stop),
        ("no".to_owned(), StopReason::ContentFilter)
    );
}

#[test]
fn fuzz_sse_openai() {
    crate::wire::fixtures::fuzz("sse-openai", decoder);
}
