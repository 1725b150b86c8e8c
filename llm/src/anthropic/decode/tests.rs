//! Tries the decoder on hand-written streams.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::wire::fixtures::{read, read_and_hang};

const WHOLE: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"id":"msg_1","model":"claude-x-2026","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":5,"output_tokens":1}}}"#,
    "\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n: a comment\n\n",
    "event: content_block_start\r\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
    "\r\n\r\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hé"}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"llo 🪢"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":1}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"write","input":{}}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":".txt\"}"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":2}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42}}"#,
    "\n\nevent: message_stop\n",
    r#"data: {"type":"message_stop"}"#,
    "\n\n",
);

fn decoder() -> Messages {
    Messages::new("asked".to_owned(), "p".to_owned())
}

fn usage(output_tokens: u64) -> Usage {
    Usage {
        input_tokens: 10,
        output_tokens,
        cache_read_tokens: 5,
        cache_write_tokens: 3,
    }
}

fn whole() -> Reply {
    Reply {
        blocks: vec![
            Block::Text("Héllo 🪢".to_owned()),
            Block::ToolUse(ToolUse::parse("toolu_1", "write", r#"{"path":"a.txt"}"#)),
        ],
        stop: StopReason::ToolUse,
        usage: usage(42),
        model: "claude-x-2026".to_owned(),
    }
}

#[tokio::test]
async fn a_whole_stream_is_read_however_it_is_cut_into_packets() {
    for piece in [1, 2, 3, 7, 64, WHOLE.len()] {
        let (deltas, reply) = read(WHOLE.as_bytes(), piece, decoder()).await;
        assert_eq!(reply, Ok(whole()), "pieces of {piece}");
        assert_eq!(
            deltas,
            [
                Delta::Usage(usage(1)),
                Delta::Text("Hé".to_owned()),
                Delta::Text("llo 🪢".to_owned()),
                Delta::ToolUseStarted {
                    id: "toolu_1".to_owned(),
                    name: "write".to_owned()
                },
                Delta::ToolUse(ToolUse::parse("toolu_1", "write", r#"{"path":"a.txt"}"#)),
                Delta::Usage(usage(42)),
            ]
        );
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_never_completes() {
    for cut in 0..WHOLE.len() {
        let (_, reply) = read(&WHOLE.as_bytes()[..cut], 64, decoder()).await;
        assert_eq!(reply, Err(ModelError::Truncated), "cut at byte {cut}");
    }
}

#[tokio::test]
async fn the_reply_ends_at_its_last_event_and_not_with_the_connection() {
    let reply = read_and_hang(WHOLE.as_bytes(), decoder(), CancellationToken::new()).await;
    assert_eq!(reply, Ok(whole()));
}

#[tokio::test]
async fn an_error_event_fails_the_reply() {
    let failed = concat!(
        "event: error\n",
        r#"data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    let (_, reply) = read(failed.as_bytes(), 64, decoder()).await;
    assert_eq!(
        reply,
        Err(ModelError::Overloaded {
            status: 529,
            message: "Overloaded".to_owned(),
            retry_after: None
        })
    );
}

#[tokio::test]
async fn junk_is_malformed() {
    let streams: [&[u8]; 6] = [
        b"data: {not json\n\n",
        b"data: {\"type\":\"message_stop\"}\n\n",
        b"data: {\"type\":\"content_block_stop\",\"index\":7}\n\n",
        b"data: \"a string\"\n\n",
        b"data: {\"a\":\"\xff\"}\n\n",
        b"<html>\n",
    ];
    for bytes in streams {
        let (_, reply) = read(bytes, 64, decoder()).await;
        let shown = String::from_utf8_lossy(bytes);
        assert!(
            matches!(reply, Err(ModelError::Malformed { .. })),
            "{shown}: {reply:?}"
        );
    }
}

#[tokio::test]
async fn half_written_arguments_reach_the_caller() {
    let half = WHOLE.replace(r#".txt\"}"#, ".txt");
    let (deltas, reply) = read(half.as_bytes(), 64, decoder()).await;
    let call = ToolUse::parse("toolu_1", "write", r#"{"path": "a.txt"#);
    assert!(call.malformed && call.input == json!(r#"{"path": "a.txt"#));
    assert!(deltas.contains(&Delta::ToolUse(call.clone())));
    assert_eq!(reply.unwrap().blocks[1], Block::ToolUse(call));
}

#[tokio::test]
async fn a_cancelled_stream_ends_at_once() {
    let cancel = CancellationToken::new();
    let reply = tokio::join!(read_and_hang(b"", decoder(), cancel.clone()), async {
        cancel.cancel();
    })
    .0;
    assert_eq!(reply, Err(ModelError::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_ends_hits_the_total_time_out() {
    let began = tokio::time::Instant::now();
    let reply = read_and_hang(b"", decoder(), CancellationToken::new()).await;
    assert_eq!(
        reply,
        Err(ModelError::Timeout {
            what: crate::TimeoutKind::Total
        })
    );
    assert_eq!(began.elapsed(), Duration::from_mins(15));
}

#[test]
fn every_reason_to_stop_is_known() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::MaxTokens),
        ("refusal", StopReason::ContentFilter),
        ("pause_turn", StopReason::Other("pause_turn".to_owned())),
    ];
    for (reason, expected) in cases {
        assert_eq!(stop(reason), expected);
    }
}

#[tokio::test]
async fn what_a_model_thought_is_kept_as_it_came_for_its_provider() {
    let stream = concat!(
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"First "}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"this."}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s=="}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\n",
        r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":1}"#,
        "\n\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        "\n\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );
    let (deltas, reply) = read(stream.as_bytes(), 64, decoder()).await;
    let reply = reply.unwrap();
    assert_eq!((deltas, reply.text().as_str()), (vec![], ""));
    let kept = |data| Block::Opaque {
        provider: "p".to_owned(),
        data,
    };
    let thinking = json!({ "type": "thinking", "thinking": "First this.", "signature": "s==" });
    let redacted = json!({ "type": "redacted_thinking", "data": "x" });
    assert_eq!(reply.blocks, [kept(thinking), kept(redacted)]);
}

#[test]
fn fuzz_sse_anthropic() {
    crate::wire::fixtures::fuzz("sse-anthropic", decoder);
}
