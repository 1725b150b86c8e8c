//! How a job goes from turn to turn and how it ends.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ropewalk_config::settings::PolicySettings;
use ropewalk_engine::{
    Approval, ApprovalRequest, Approver, AskedBy, EngineError, JobEvent, Limits, Observer, Policy,
    Toolbox,
};
use ropewalk_llm::{Block, Message, ModelError, StopReason, ToolChoice, ToolUse};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{ScriptedEngine, counting, job, results};

const CALL_THEN_END: &str = r"
- turn: 1
  reply: { text: Let me count., tools: [{ name: count, input: { n: 4 } }] }
- turn: 2
  contains: count 4 run 1
  reply: { text: 'It is 4.' }
";

#[tokio::test]
async fn a_tool_call_leads_to_one_more_request_that_carries_its_result() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(CALL_THEN_END).await?;
    let (toolbox, counter) = counting()?;
    let outcome = scripted.run(&job(toolbox)).await?;
    assert_eq!(outcome.text, "It is 4.");
    assert_eq!(outcome.stop, StopReason::EndTurn);
    assert_eq!((outcome.turns, outcome.tool_calls), (2, 1));
    assert!(outcome.usage.output_tokens > 0);
    assert_eq!(counter.runs.load(Ordering::SeqCst), 1);
    let requests = scripted.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].tools.len(), 1);
    assert_eq!(requests[0].tool_choice, ToolChoice::Auto);
    assert_eq!(
        scripted.last_results(),
        [("count 4 run 1".to_owned(), false)]
    );
    assert!(!requests[1].text().contains("only for the watcher"));
    Ok(())
}

#[tokio::test]
async fn a_watcher_sees_text_and_tools_and_what_the_model_does_not() -> anyhow::Result<()> {
    #[derive(Default)]
    struct Watcher(Mutex<Vec<String>>);

    impl Observer for Watcher {
        fn see(&self, event: JobEvent) {
            let mut seen = self.0.lock().unwrap();
            let line = match event {
                JobEvent::TurnStarted { turn, .. } => format!("turn {turn}"),
                JobEvent::MessageStarted { item } => format!("begins {item}"),
                JobEvent::MessageUpdated { text, item } => {
                    let says = format!("{item} says ");
                    // A sentence may come in pieces.
                    match seen.last_mut().filter(|last| last.starts_with(&says)) {
                        Some(last) => return last.push_str(&text),
                        None => says + &text,
                    }
                }
                JobEvent::MessageEnded { item, calls, .. } => format!("{item} calls {calls:?}"),
                JobEvent::ToolStarted { name, item, .. } => format!("{item} starts {name}"),
                JobEvent::ToolEnded { item, metadata, .. } => {
                    format!("{item} ends {}", metadata["hidden"])
                }
                JobEvent::TurnEnded { turn, stop, .. } => format!("turn {turn} ended: {stop:?}"),
                _ => return,
            };
            seen.push(line);
        }
    }

    let scripted = ScriptedEngine::new(CALL_THEN_END).await?;
    let watcher = Watcher::default();
    let job = job(counting()?.0);
    let cancel = CancellationToken::new();
    scripted.engine().run(&job, &cancel, &watcher).await?;
    let seen = watcher.0.lock().unwrap().clone();
    assert_eq!(
        seen,
        [
            "turn 1",
            "begins message-1",
            "message-1 says Let me count.",
            "message-1 calls [\"count\"]",
            "scripted_build_T_001_1_1_1 starts count",
            "scripted_build_T_001_1_1_1 ends \"only for the watcher\"",
            "turn 1 ended: Some(\"tool_use\")",
            "turn 2",
            "begins message-2",
            "message-2 says It is 4.",
            "message-2 calls []",
            "turn 2 ended: Some(\"end_turn\")",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn calls_that_a_dead_process_left_without_result_are_paired_first() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("- reply: { text: Going on. }").await?;
    let mut job = job(Toolbox::default());
    let call = ToolUse::parse("old", "count", "{}");
    job.messages = vec![
        Message::user("Do it."),
        Message::assistant(vec![Block::ToolUse(call)]),
        Message::user("Go on."),
    ];
    scripted.run(&job).await?;
    let requests = scripted.requests();
    let answered = results(&requests[0].messages[2]);
    assert_eq!(answered.len(), 1);
    assert!(answered[0].1 && answered[0].0.contains("interrupted"));
    Ok(())
}

#[tokio::test]
async fn of_sixty_calls_fifty_run_and_ten_get_an_error() -> anyhow::Result<()> {
    let calls: Vec<String> = (0..60)
        .map(|n| format!("    - {{ name: count, input: {{ n: {n} }} }}\n"))
        .collect();
    let script = format!(
        "- turn: 1\n  reply:\n    tools:\n{}- turn: 2\n  reply: {{ text: done }}\n",
        calls.concat()
    );
    let scripted = ScriptedEngine::new(&script).await?;
    let (toolbox, counter) = counting()?;
    let outcome = scripted.run(&job(toolbox)).await?;
    assert_eq!(counter.runs.load(Ordering::SeqCst), 50);
    assert_eq!(outcome.tool_calls, 50);
    let results = scripted.last_results();
    assert_eq!(results.len(), 60);
    assert!(results[..50].iter().all(|(_, is_error)| !is_error));
    assert!(results[50..].iter().all(|(_, is_error)| *is_error));
    Ok(())
}

/// Calls the same until it is told better.
const CIRCLES: &str = "- contains: 'go round in circles'\n  reply: { text: I stop. }\n\
    - reply: { tools: [{ name: count, input: { n: 3 } }] }\n";

#[tokio::test]
async fn the_third_identical_call_in_a_row_is_not_run() -> anyhow::Result<()> {
    let scripted =
        ScriptedEngine::new("- reply: { tools: [{ name: count, input: { n: 1 } }] }").await?;
    let (toolbox, counter) = counting()?;
    let ended = scripted.run(&job(toolbox)).await;
    // It is told twice before it is given up.
    assert!(matches!(ended, Err(EngineError::DoomLoop { tool }) if tool == "count"));
    assert_eq!(counter.runs.load(Ordering::SeqCst), 2);
    assert_eq!(scripted.requests().len(), 5);
    let told = scripted.last_results();
    assert!(
        told[0].1 && told[0].0.contains("nobody is there"),
        "{told:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_model_that_is_told_of_its_circle_goes_on_whatever_rules_allow() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(CIRCLES).await?;
    let (toolbox, counter) = counting()?;
    let mut rules = PolicySettings::default();
    let all = json!([{ "permission": "*", "pattern": "**", "action": "allow" }]);
    rules.rules.flags = serde_json::from_value(all)?;
    let outcome = scripted
        .run(&job(toolbox.guarded_by(Policy::new(rules))))
        .await?;
    assert_eq!(outcome.text, "I stop.");
    assert_eq!(counter.runs.load(Ordering::SeqCst), 2);
    Ok(())
}

/// Allows everything, and remembers what it was asked.
#[derive(Default)]
struct Yes(Mutex<Vec<ApprovalRequest>>);

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, request: &ApprovalRequest) -> Approval {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(request.clone());
        Approval::Granted
    }
}

#[tokio::test]
async fn only_a_person_lets_a_circle_be_closed() -> anyhow::Result<()> {
    let script = "- contains: '3 run 4'\n  reply: { text: I stop. }\n\
        - reply: { tools: [{ name: count, input: { n: 3 } }] }\n";
    let scripted = ScriptedEngine::new(script).await?;
    let (toolbox, counter) = counting()?;
    let yes = Arc::new(Yes::default());
    let policy = Policy::default().approved_by(yes.clone());
    let job = job(toolbox.guarded_by(policy));
    scripted.run(&job).await?;
    assert_eq!(counter.runs.load(Ordering::SeqCst), 4);
    let asked = yes.0.lock().unwrap().clone();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].at <= asked[1].at);
    for request in asked {
        assert_eq!(request.asked_by, AskedBy::Repetition);
        assert_eq!(request.subject, r#"{"n":3}"#);
        assert_eq!(
            (request.tool.as_str(), request.agent),
            ("count", job.journal_key.clone())
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_job_is_not_asked_more_often_than_it_may() -> anyhow::Result<()> {
    let script: Vec<String> = (1..=9)
        .map(|n| {
            format!(
                "- {{ turn: {n}, reply: {{ tools: [{{ name: count, input: {{ n: {n} }} }}] }} }}\n"
            )
        })
        .collect();
    let scripted = ScriptedEngine::new(&script.concat()).await?;
    let mut limited = job(counting()?.0);
    limited.limits = Limits {
        turns: 5,
        ..Limits::default()
    };
    let ended = scripted.run(&limited).await;
    assert!(matches!(ended, Err(EngineError::TurnLimit { turns: 5 })));
    assert_eq!(scripted.requests().len(), 5);
    Ok(())
}

#[tokio::test]
async fn used_up_tokens_stop_a_job_before_the_next_call() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(CALL_THEN_END).await?;
    let mut limited = job(counting()?.0);
    limited.limits.total_tokens = Some(1);
    let ended = scripted.run(&limited).await;
    assert!(matches!(
        ended,
        Err(EngineError::TokenLimit { limit: 1, .. })
    ));
    assert_eq!(scripted.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_reply_that_was_cut_runs_no_tool_and_says_why_it_ended() -> anyhow::Result<()> {
    for (stop, reason) in [
        ("max_tokens", StopReason::MaxTokens),
        ("content_filter", StopReason::ContentFilter),
    ] {
        let script = format!(
            "- reply: {{ text: half, stop: {stop}, tools: [{{ name: count, input: {{ n: 1 }} }}] }}"
        );
        let scripted = ScriptedEngine::new(&script).await?;
        let (toolbox, counter) = counting()?;
        let outcome = scripted.run(&job(toolbox)).await?;
        assert_eq!((outcome.stop, outcome.text.as_str()), (reason, "half"));
        assert_eq!(counter.runs.load(Ordering::SeqCst), 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_model_that_fails_fails_the_job_with_its_own_error() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("- reply: { error: { kind: truncated } }").await?;
    let ended = scripted.run(&job(Toolbox::default())).await;
    assert!(matches!(
        ended,
        Err(EngineError::Model(ModelError::Truncated))
    ));
    Ok(())
}
