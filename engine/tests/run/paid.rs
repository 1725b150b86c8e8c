//! What a reply costs that comes over HTTP and is not kept.

use ropewalk_engine::{Allowance, Budgets, EngineError, SilentObserver, UsageScope};
use ropewalk_llm::{ModelError, ProviderConfig, build};
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::Query;
use tokio_util::sync::CancellationToken;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{ScriptedEngine, counting, job};

/// The beginning of a reply for which 3 tokens were read.
const BEGIN: &str = concat!(
    r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":3}}}"#,
    "\n\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    "\n\n",
);

fn words(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    )
}

/// Runs three attempts at a task that may use 200 tokens on a provider that answers `body`; returns how the first
/// ended, how often was asked, and what was written down.
async fn three_attempts(body: String) -> anyhow::Result<(EngineError, usize, Vec<ModelCall>)> {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(200).set_body_raw(body, "text/event-stream");
    let posted = Mock::given(method("POST")).respond_with(answer);
    posted.mount(&server).await;
    let mut config = ProviderConfig::shipped("anthropic")?;
    config.base_url = server.uri();
    let model = build(&config, Some("k".into()), None, &Clock::system())?;
    let scripted = ScriptedEngine::new("[]").await?;
    let task = Allowance {
        tokens: Some(200),
        micro_usd: None,
    };
    let budgets = Budgets {
        task,
        ..Budgets::default()
    };
    let engine = scripted.engine_on(model).with_budgets(budgets);
    let mut job = job(counting()?.0);
    job.scope = UsageScope {
        idea: None,
        build: Some(BuildId::from(uuid::Uuid::from_u128(3))),
        task: Some(TaskId::parse("T-001")?),
        chain: None,
    };
    let cancel = CancellationToken::new();
    let mut ends = Vec::new();
    for attempt in 1..=3 {
        job.journal_key = format!("attempt/{attempt}");
        match engine.run(&job, &cancel, &SilentObserver).await {
            Ok(outcome) => anyhow::bail!("{outcome:?}"),
            Err(error) => ends.push(error),
        }
    }
    let last = ends.pop();
    anyhow::ensure!(matches!(last, Some(EngineError::Budget(_))), "{last:?}");
    let asked = server.received_requests().await.unwrap_or_default().len();
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    let rows = rows.into_iter().map(|row| row.record).collect();
    Ok((ends.remove(0), asked, rows))
}

#[tokio::test]
async fn a_reply_with_more_words_than_are_kept_is_paid_once_and_stops_at_the_budget()
-> anyhow::Result<()> {
    let body = format!("{BEGIN}{}", words(64 * 1024).repeat(21));
    let (first, asked, rows) = three_attempts(body).await?;
    let too_long = matches!(first, EngineError::Model(ModelError::TooLong { .. }));
    assert!(too_long, "{first}");
    assert_eq!((asked, rows.len()), (1, 1));
    assert_eq!(rows[0].input_tokens, 3);
    assert!(rows[0].output_tokens >= 1024 * 1024 / 4);
    assert!(rows[0].refusal.is_some() && rows[0].reply.is_null());
    Ok(())
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_paid_as_far_as_it_came() -> anyhow::Result<()> {
    let (first, asked, rows) = three_attempts(format!("{BEGIN}{}", words(800))).await?;
    let cut = matches!(first, EngineError::Model(ModelError::Truncated));
    assert!(cut, "{first}");
    assert_eq!((asked, rows.len()), (1, 1));
    assert_eq!((rows[0].input_tokens, rows[0].output_tokens), (3, 200));
    Ok(())
}
