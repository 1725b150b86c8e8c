//! Tries scripts.

use chrono::DateTime;
use serde_json::json;

use super::*;
use crate::message::Message;

const SCRIPT: &str = r#"
- agent: build
  task: T1
  attempt: 1
  turn: 1
  absent: "mind the gap"
  reply:
    text: |
      First I write.
      Then I stop.
    tools:
      - name: write
        input: { path: src/lib.rs, lines: 3, nested: { deep: [1, true, null] } }
      - name: bash
        malformed: '{"command": "ls'
- agent: build
  task: T1
  contains: [mind the gap, write]
  reply: { text: careful now }
- agent: spec
  attempt: 2
  reply:
    error: { kind: rate_limited, message: slow down, retry_after_seconds: 7 }
- agent: spec
  reply: { text: late, delay_ms: 500, stop: max_tokens }
"#;

fn request(agent: &str, attempt: u32, system: &str) -> ModelRequest {
    let mut request = ModelRequest::new("any", system, vec![Message::user("please write it")]);
    request.script = Some(ScriptKey {
        agent: agent.to_owned(),
        idea: "todo-list".to_owned(),
        task: "T1".to_owned(),
        attempt,
        turn: 1,
    });
    request
}

async fn ask(request: &ModelRequest) -> Result<Reply, ModelError> {
    let clock = Clock::manual(DateTime::UNIX_EPOCH);
    let model = ScriptedModel::new(Script::parse(SCRIPT).unwrap(), clock.clone());
    let cancel = CancellationToken::new();
    let (reply, ()) = tokio::join!(model.ask(request, &cancel), async {
        tokio::task::yield_now().await;
        clock.advance(Duration::from_millis(500));
    });
    reply
}

#[tokio::test]
async fn a_rule_answers_text_and_tools_the_same_way_each_time() {
    let request = request("build", 1, "be brief");
    let reply = ask(&request).await.unwrap();
    assert_eq!(
        reply.blocks,
        [
            Block::Text("First I write.\nThen I stop.\n".to_owned()),
            Block::ToolUse(ToolUse {
                id: "scripted_build_T1_1_1_1".to_owned(),
                name: "write".to_owned(),
                input: json!({ "path": "src/lib.rs", "lines": 3,
                    "nested": { "deep": [1, true, null] } }),
                malformed: false,
            }),
            Block::ToolUse(ToolUse {
                id: "scripted_build_T1_1_1_2".to_owned(),
                name: "bash".to_owned(),
                input: json!("{\"command\": \"ls"),
                malformed: true,
            }),
        ]
    );
    assert_eq!(reply.stop, StopReason::ToolUse);
    // "be brief\nplease write it" has 24 characters.
    assert_eq!(reply.usage.input_tokens, 6);
    assert!(reply.usage.output_tokens > 10);
    assert_eq!(ask(&request).await.unwrap(), reply);
}

#[tokio::test]
async fn the_answer_depends_on_what_the_request_says() {
    let reply = ask(&request("build", 1, "mind the gap")).await.unwrap();
    assert_eq!(reply.text(), "careful now");
    assert_eq!(reply.stop, StopReason::EndTurn);
}

#[tokio::test]
async fn a_rule_may_fail_and_may_take_its_time() {
    assert_eq!(
        ask(&request("spec", 2, "")).await.unwrap_err(),
        ModelError::RateLimited {
            message: "slow down".to_owned(),
            retry_after: Some(Duration::from_secs(7))
        }
    );
    let late = ask(&request("spec", 1, "")).await.unwrap();
    assert_eq!(
        (late.text().as_str(), late.stop),
        ("late", StopReason::MaxTokens)
    );
}

#[tokio::test]
async fn an_unanswered_call_is_named() {
    let error = ask(&request("pm", 3, "")).await.unwrap_err();
    assert!(!error.retryable());
    assert_eq!(
        error.to_string(),
        "no rule of the script answers agent `pm`, idea `todo-list`, task `T1`, attempt 3, turn 1; add one"
    );
}

#[test]
fn a_broken_script_is_refused_with_its_place() {
    let cases = [
        ("- agent: build", "reply"),
        ("- agnet: build\n  reply: { text: x }", "agnet"),
        (
            "- reply: { text: x }\n- reply: { delay_ms: 3 }",
            "rule 2: a reply has either",
        ),
        (
            "- reply: { text: x, error: { kind: network } }",
            "rule 1: a reply has either",
        ),
        ("- reply: { error: { kind: boredom } }", "boredom"),
        (
            "- reply: { tools: [{ name: ls, input: { a: 1 }, malformed: x }] }",
            "tool `ls`",
        ),
        ("reply: x", "the script is not valid"),
    ];
    for (yaml, expected) in cases {
        let error = Script::parse(yaml).unwrap_err().to_string();
        assert!(error.contains(expected), "{yaml}: {error}");
    }
}

#[tokio::test]
async fn a_reply_waits_for_its_file_or_until_it_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("go");
    let script = format!("- reply: {{ text: here, until: {} }}", file.display());
    let script = Script::parse(&script).unwrap();
    let model = ScriptedModel::new(script, Clock::system());
    let (asked, cancel) = (request("spec", 1, ""), CancellationToken::new());
    let (reply, ()) = tokio::join!(model.ask(&asked, &cancel), async {
        tokio::time::sleep(LOOK * 3).await;
        std::fs::write(&file, "").unwrap();
    });
    assert!(reply.is_ok());
    std::fs::remove_file(&file).unwrap();
    let (reply, ()) = tokio::join!(model.ask(&asked, &cancel), async {
        tokio::time::sleep(LOOK).await;
        cancel.cancel();
    });
    assert!(matches!(reply, Err(ModelError::Cancelled)), "{reply:?}");
}
