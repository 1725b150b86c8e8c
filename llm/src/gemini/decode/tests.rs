//! Tries the decoder on hand-written streams.

use super::*;
use crate::wire::fixtures::read;

const STREAM: &str = concat!(
    r#"data: {"candidates":[{"content":{"parts":[{"text":"Let me think.","thought":true}],"role":"model"},"index":0}],"responseId":"r1","modelVersion":"gemini-x-002","usageMetadata":{"promptTokenCount":15}}"#,
    "\r\n\r\n",
    r#"data: {"candidates":[{"content":{"parts":[{"text":"signed","thought":true,"thoughtSignature":"s0"}]},"index":0}]}"#,
    "\r\n\r\n",
    r#"data: {"candidates":[{"content":{"parts":[{"text":"Hé"}],"role":"model"},"index":0}]}"#,
    "\r\n\r\n",
    r#"data: {"candidates":[{"content":{"parts":[{"text":"llo"}],"role":"model"},"index":0}]}"#,
    "\r\n\r\n",
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"write","args":{"path":"a"}},"thoughtSignature":"s1"},{"functionCall":{"id":"own","name":"ls"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":40,"thoughtsTokenCount":2,"cachedContentTokenCount":5,"totalTokenCount":57}}"#,
    "\r\n\r\n",
);

fn decoder() -> Response {
    Response::new("asked".to_owned(), "p".to_owned())
}

fn opaque(data: Value) -> Block {
    Block::Opaque {
        provider: "p".to_owned(),
        data,
    }
}

#[tokio::test]
async fn a_whole_stream_is_read_however_it_is_cut_into_packets() {
    let first = ToolUse::parse("call_r1_0", "write", r#"{"path":"a"}"#);
    let second = ToolUse::parse("own", "ls", "");
    let whole = Reply {
        blocks: vec![
            opaque(json!({ "text": "signed", "thought": true, SIGNATURE: "s0" })),
            Block::Text("Héllo".to_owned()),
            opaque(json!({ SIGNATURE: "s1" })),
            Block::ToolUse(first.clone()),
            Block::ToolUse(second.clone()),
        ],
        stop: StopReason::ToolUse,
        usage: Usage {
            input_tokens: 10,
            output_tokens: 42,
            cache_read_tokens: 5,
            cache_write_tokens: 0,
        },
        model: "gemini-x-002".to_owned(),
    };
    for piece in [1, 7, 64, STREAM.len()] {
        let (deltas, reply) = read(STREAM.as_bytes(), piece, decoder()).await;
        assert_eq!(reply, Ok(whole.clone()), "pieces of {piece}");
        let told: Vec<&Delta> = deltas
            .iter()
            .filter(|delta| !matches!(delta, Delta::Usage(_)))
            .collect();
        let started = |call: &ToolUse| Delta::ToolUseStarted {
            id: call.id.clone(),
            name: call.name.clone(),
        };
        let expected = [
            Delta::Text("Hé".to_owned()),
            Delta::Text("llo".to_owned()),
            started(&first),
            Delta::ToolUse(first.clone()),
            started(&second),
            Delta::ToolUse(second.clone()),
        ];
        assert_eq!(told, expected.iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_before_its_reason_is_truncated() {
    let reason = STREAM.rfind("data:").unwrap();
    for end in 0..=reason {
        let (_, reply) = read(&STREAM.as_bytes()[..end], 64, decoder()).await;
        assert_eq!(reply, Err(ModelError::Truncated), "cut at {end}");
    }
}

#[tokio::test]
async fn words_that_are_signed_stay_apart_from_those_that_are_not() {
    let stream = concat!(
        r#"data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#,
        "\n\n",
        r#"data: {"candidates":[{"content":{"parts":[{"text":"b","thoughtSignature":"s"},{"text":"c"}]}}]}"#,
        "\n\n",
        r#"data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"t"}]},"finishReason":"STOP"}]}"#,
        "\n\n",
    );
    let (_, reply) = read(stream.as_bytes(), 64, decoder()).await;
    let reply = reply.unwrap();
    let text = |text: &str| Block::Text(text.to_owned());
    assert_eq!(
        reply.blocks,
        [
            text("a"),
            opaque(json!({ SIGNATURE: "s" })),
            text("b"),
            text("c"),
            opaque(json!({ SIGNATURE: "t" })),
        ]
    );
    assert_eq!(reply.stop, StopReason::EndTurn);
}

#[tokio::test]
async fn errors_and_refusals_within_a_stream_are_told() {
    let error = r#"data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    let (_, reply) = read(format!("{error}\n\n").as_bytes(), 64, decoder()).await;
    assert!(matches!(
        reply,
        Err(ModelError::Overloaded { status: 503, .. })
    ));
    let blocked = r#"data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#;
    let (_, reply) = read(format!("{blocked}\n\n").as_bytes(), 64, decoder()).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.stop, reply.usage.input_tokens),
        (StopReason::ContentFilter, 3)
    );
    let (_, reply) = read(b"data: {]\n\n", 64, decoder()).await;
    assert!(matches!(reply, Err(ModelError::Malformed { .. })));
}

#[test]
fn every_reason_to_stop_is_known() {
    let rows = [
        ("STOP", false, StopReason::EndTurn),
        ("STOP", true, StopReason::ToolUse),
        ("FUNCTION_CALL", true, StopReason::ToolUse),
        ("MAX_TOKENS", true, StopReason::MaxTokens),
        ("SAFETY", false, StopReason::ContentFilter),
        (
            "MALFORMED_FUNCTION_CALL",
            false,
            StopReason::Other("MALFORMED_FUNCTION_CALL".to_owned()),
        ),
    ];
    for (reason, calls, expected) in rows {
        assert_eq!(stop(reason, calls), expected, "{reason}");
    }
}

#[test]
fn fuzz_sse_gemini() {
    crate::wire::fixtures::fuzz("sse-gemini", decoder);
}
