//! Tries the decoder on hand-written streams.

use super::*;
use crate::wire::fixtures::read;

const STREAM: &str = concat!(
    r#"data: {"type":"response.created","response":{"id":"r1","model":"gpt-x","error":null}}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"x"}}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m"}}"#,
    "\n\n",
    r#"data: {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hé"}"#,
    "\n\n",
    r#"data: {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"llo"}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m"}}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"f","call_id":"call_a","name":"write","arguments":""}}"#,
    "\n\n",
    r#"data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"path\":\"a\"}"}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f","call_id":"call_a","name":"write","arguments":"{\"path\":\"a\"}"}}"#,
    "\n\n",
    r#"data: {"type":"response.completed","response":{"id":"r1","model":"gpt-x-2026","error":null,"incomplete_details":null,"usage":{"input_tokens":15,"output_tokens":42,"input_tokens_details":{"cached_tokens":5}}}}"#,
    "\n\n",
);

fn decoder() -> Response {
    Response::new("asked".to_owned(), "p".to_owned())
}

#[tokio::test]
async fn a_whole_stream_is_read_however_it_is_cut_into_packets() {
    let call = ToolUse::parse("call_a", "write", r#"{"path":"a"}"#);
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 42,
        cache_read_tokens: 5,
        cache_write_tokens: 0,
    };
    for piece in [1, 7, 64, STREAM.len()] {
        let (deltas, reply) = read(STREAM.as_bytes(), piece, decoder()).await;
        let whole = Reply {
            blocks: vec![
                Block::Opaque {
                    provider: "p".to_owned(),
                    data: serde_json::json!({ "type": "reasoning", "id": "rs", "encrypted_content": "x" }),
                },
                Block::Text("Héllo".to_owned()),
                Block::ToolUse(call.clone()),
            ],
            stop: StopReason::ToolUse,
            usage,
            model: "gpt-x-2026".to_owned(),
        };
        assert_eq!(reply, Ok(whole), "pieces of {piece}");
        let started = Delta::ToolUseStarted {
            id: "call_a".to_owned(),
            name: "write".to_owned(),
        };
        assert_eq!(
            deltas,
            [
                Delta::Text("Hé".to_owned()),
                Delta::Text("llo".to_owned()),
                started,
                Delta::ToolUse(call.clone()),
                Delta::Usage(usage),
            ]
        );
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_before_its_end_never_completes() {
    // The very last byte is an empty line's, which adds nothing.
    for cut in 0..STREAM.len() - 2 {
        let (_, reply) = read(&STREAM.as_bytes()[..cut], 64, decoder()).await;
        assert_eq!(reply, Err(ModelError::Truncated), "cut at byte {cut}");
    }
}

#[tokio::test]
async fn a_response_that_stops_early_says_why() {
    let ended = |event: &str, details: &str| {
        format!("data: {{\"type\":\"response.{event}\",\"response\":{{{details}}}}}\n\n")
    };
    let rows = [
        (
            ended(
                "incomplete",
                r#""incomplete_details":{"reason":"max_output_tokens"}"#,
            ),
            StopReason::MaxTokens,
        ),
        (
            ended(
                "incomplete",
                r#""incomplete_details":{"reason":"content_filter"}"#,
            ),
            StopReason::ContentFilter,
        ),
        (
            ended("completed", r#""status":"incomplete""#),
            StopReason::MaxTokens,
        ),
        (
            ended("completed", r#""incomplete_details":null"#),
            StopReason::EndTurn,
        ),
    ];
    for (stream, stop) in rows {
        let (_, reply) = read(stream.as_bytes(), 64, decoder()).await;
        assert_eq!(reply.unwrap().stop, stop, "{stream}");
    }
    let failed = concat!(
        r#"data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}"#,
        "\n\n",
    );
    let (_, reply) = read(failed.as_bytes(), 64, decoder()).await;
    assert!(
        matches!(reply, Err(ModelError::RateLimited { .. })),
        "{reply:?}"
    );
}

#[test]
fn fuzz_sse_responses() {
    crate::wire::fixtures::fuzz("sse-responses", decoder);
}
