//! What a crash leaves, and how the next run goes on from it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use ropewalk_engine::{
    Allowance, Budgets, EngineError, Job, SilentObserver, Tool, Toolbox, UsageScope,
};
use ropewalk_llm::Block;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::{BuildId, CorrelationId, Slug, TaskId, trace};
use ropewalk_store::Query;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Counter, ScriptedEngine, counting, job, submission};

const TWO_TURNS: &str = r"
- turn: 1
  reply: { tools: [{ name: count, input: { n: 1 } }] }
- turn: 2
  reply: { text: done }
";

#[tokio::test]
async fn a_job_that_runs_again_asks_nothing_again() -> anyhow::Result<()> {
    let mut scripted = ScriptedEngine::new(TWO_TURNS).await?;
    let (toolbox, counter) = counting()?;
    let job = job(toolbox);
    let first = scripted.run(&job).await?;
    scripted.restart("[]")?;
    let second = scripted.run(&job).await?;
    assert_eq!(first, second);
    assert!(scripted.requests().is_empty());
    assert_eq!(counter.runs.load(Ordering::SeqCst), 2);
    Ok(())
}

#[tokio::test]
async fn a_job_that_broke_off_goes_on_where_it_was() -> anyhow::Result<()> {
    let mut scripted =
        ScriptedEngine::new("- { turn: 1, reply: { tools: [{ name: count, input: { n: 1 } }] } }")
            .await?;
    let job = job(counting()?.0);
    assert!(matches!(
        scripted.run(&job).await,
        Err(EngineError::Model(_))
    ));
    scripted.restart("- { turn: 2, contains: run 2, reply: { text: done } }")?;
    let outcome = scripted.run(&job).await?;
    assert_eq!((outcome.text.as_str(), outcome.turns), ("done", 2));
    assert_eq!(scripted.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn other_work_gets_other_replies() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(TWO_TURNS).await?;
    let mut job = job(counting()?.0);
    scripted.run(&job).await?;
    job.journal_key = "attempt/other".to_owned();
    scripted.run(&job).await?;
    assert_eq!(scripted.requests().len(), 4);
    Ok(())
}

#[tokio::test]
async fn how_a_job_came_to_its_result_is_recalled_where_it_only_looked() -> anyhow::Result<()> {
    let handed_in = TWO_TURNS.replace(
        "text: done",
        "tools: [{ name: finish, input: { number: 3 } }]",
    );
    let scripted = ScriptedEngine::new(&handed_in).await?;
    let (looking, counter) = counting()?;
    let mut looked = job(looking);
    looked.submission = Some(submission(0));
    scripted.run(&looked).await?;
    let engine = scripted.engine();
    let recalled = engine
        .recall(&looked)
        .await?
        .context("it came to a result")?;
    assert_eq!(recalled.result, json!({ "number": 3 }));
    let told = recalled.answered("taken");
    let results: Vec<&Block> = told.iter().flat_map(|turn| &turn.blocks).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        matches!(results[1], Block::ToolResult { content, is_error: false, .. } if content == "count 1 run 2")
    );
    assert!(
        matches!(results[3], Block::ToolResult { content, is_error: false, .. } if content == "taken")
    );
    assert_eq!(
        (
            scripted.requests().len(),
            counter.runs.load(Ordering::SeqCst)
        ),
        (2, 2)
    );
    let unknown = Job {
        journal_key: "attempt/other".to_owned(),
        ..looked.clone()
    };
    assert!(engine.recall(&unknown).await?.is_none());
    let changing = Counter::alone("count", &Arc::default());
    looked.tools = Toolbox::new([changing.clone() as Arc<dyn Tool>])?;
    assert!(engine.recall(&looked).await?.is_none());
    assert_eq!(changing.runs.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::test]
async fn every_call_is_a_row_with_its_use() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(TWO_TURNS).await?;
    let mut job = job(counting()?.0);
    let build = BuildId::from(uuid::Uuid::from_u128(3));
    let chain = CorrelationId::from(uuid::Uuid::from_u128(4));
    job.scope = UsageScope {
        idea: Some(Slug::parse("habits")?),
        build: Some(build),
        task: Some(TaskId::parse("T-001")?),
        chain: Some(chain),
    };
    let outcome = scripted.run(&job).await?;
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].record.key, format!("{}/1", job.journal_key));
    assert!(rows.iter().all(|row| row.record.role == "build"
        && row.record.build == Some(build)
        && row.record.micro_usd.is_none()));
    let output: u64 = rows.iter().map(|row| row.record.output_tokens).sum();
    assert_eq!(output, outcome.usage.output_tokens);
    // What is written down is what went along with the request.
    let sent: Vec<Option<String>> = scripted
        .requests()
        .into_iter()
        .map(|request| request.traceparent)
        .collect();
    let written: Vec<Option<String>> = rows
        .iter()
        .map(|row| row.record.traceparent.clone())
        .collect();
    assert_eq!(sent, written);
    let expected = rows
        .iter()
        .map(|row| Some(trace::of_call(chain, &row.record.key, false)));
    assert_eq!(written, expected.collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_reply_that_cannot_be_kept_is_paid_all_the_same_and_the_budget_knows_it()
-> anyhow::Result<()> {
    let scripted =
        ScriptedEngine::new(&format!("- reply: {{ text: {} }}", "x".repeat(1_300_000))).await?;
    let budgets = Budgets {
        task: Allowance {
            tokens: Some(200),
            micro_usd: None,
        },
        ..Budgets::default()
    };
    let engine = scripted.engine().with_budgets(budgets);
    let mut job = job(counting()?.0);
    job.scope = UsageScope {
        idea: Some(Slug::parse("habits")?),
        build: Some(BuildId::from(uuid::Uuid::from_u128(3))),
        task: Some(TaskId::parse("T-001")?),
        chain: None,
    };
    let cancel = CancellationToken::new();
    for attempt in 1..=3 {
        job.journal_key = format!("attempt/{attempt}");
        let ended = engine
            .run(&job, &cancel, &SilentObserver)
            .await
            .unwrap_err();
        let told = ended.to_string();
        let expected = if attempt == 1 {
            "1048576 bytes"
        } else {
            "is used up"
        };
        assert!(told.contains(expected), "{attempt}: {told}");
    }
    assert_eq!(scripted.requests().len(), 1);
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    assert_eq!(rows.len(), 1);
    assert!(rows[0].record.output_tokens > 200 && rows[0].record.reply.is_null());
    let refusal = rows[0].record.refusal.as_deref().unwrap_or_default();
    assert!(refusal.contains("1048576 bytes"), "{refusal}");
    Ok(())
}
