//! What tools do is told as spans to a receiver that others wrote, and what they were asked and answered to nobody.
//!
//! A process sends its spans to one place, so that this test has one to itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use ropewalk_engine::{
    Engine, Job, Limits, ModelEntry, ModelRole, Models, SilentObserver, Tool, ToolContext,
    ToolFailure, ToolOutput, Toolbox, UsageScope,
};
use ropewalk_llm::{Message, PriceTable, Script, ScriptKey, ScriptedModel};
use ropewalk_runtime::Clock;
use ropewalk_runtime::traces::{self, TraceOptions};
use ropewalk_schemas::{CorrelationId, trace};
use ropewalk_store::{Location, Store};
use ropewalk_tests::servers::{ReceivedSpan, SpanReceiver};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Calls a tool that does it, one that cannot, and one that there is not.
const SCRIPT: &str = r"
- turn: 1
  reply: { tools: [{ name: look, input: { at: canary-asked } }, { name: fail, input: {} }, { name: canary-name, input: {} }] }
- turn: 2
  reply: { text: done }
";

/// A tool that goes by its name.
struct Answerer(&'static str);

#[async_trait]
impl Tool for Answerer {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &'static str {
        "answers"
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "at": { "type": "string" } } })
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    async fn execute(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let answer = "canary-answered";
        Ok(match self.0 {
            "fail" => ToolOutput::error(answer),
            _ => ToolOutput::text(answer),
        })
    }
}

fn job(chain: CorrelationId) -> Result<Job> {
    let tools = ["look", "fail"].map(|name| Arc::new(Answerer(name)) as Arc<dyn Tool>);
    Ok(Job {
        journal_key: "attempt/traced".to_owned(),
        role: ModelRole::Build,
        script: ScriptKey {
            agent: "build".to_owned(),
            idea: "habits".to_owned(),
            task: "T-001".to_owned(),
            attempt: 1,
            turn: 0,
        },
        scope: UsageScope {
            chain: Some(chain),
            ..UsageScope::default()
        },
        system: "You build.".to_owned(),
        messages: vec![Message::user("Do it.")],
        tools: Toolbox::new(tools)?,
        submission: None,
        limits: Limits::default(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tool_call_is_a_span_of_its_job_and_says_nothing_of_what_went_in_or_came_out()
-> Result<()> {
    let receiver = SpanReceiver::start()?;
    traces::start(TraceOptions {
        endpoint: receiver.url(),
        headers: HashMap::new(),
        sample_percent: 100,
        resource: BTreeMap::new(),
    })?;
    let directory = tempfile::tempdir()?;
    let clock = Clock::system();
    let location = Location::Sqlite(directory.path().join("store.db"));
    let store = Store::open(&location, clock.clone()).await?;
    let models = Models::all(ModelEntry {
        model: Arc::new(ScriptedModel::new(Script::parse(SCRIPT)?, clock.clone())),
        name: "scripted".to_owned(),
        prices: PriceTable::default(),
        window_tokens: None,
        sees_images: true,
    });
    let chain = CorrelationId::from(uuid::Uuid::from_u128(4));
    let engine = Engine::new(store.clone(), models, clock);
    let outcome = engine
        .run(&job(chain)?, &CancellationToken::new(), &SilentObserver)
        .await?;
    assert_eq!((outcome.text.as_str(), outcome.tool_calls), ("done", 3));
    traces::flush(Duration::from_secs(10)).await;
    let spans = receiver.spans();
    let job = spans
        .iter()
        .find(|span| span.name() == "invoke_agent build");
    let job = job.context("a span of the job")?;
    assert_eq!(job.trace(), trace::trace_id(chain));
    let calls = spans
        .iter()
        .filter(|span| span.attribute("gen_ai.operation.name") == Some("execute_tool"));
    let told = |span: &ReceivedSpan| {
        let said = |key| span.attribute(key).map(str::to_owned);
        assert_eq!(span.parent(), Some(job.id()), "{span:?}");
        (
            span.name().to_owned(),
            said("gen_ai.tool.call.id"),
            said("error.type"),
        )
    };
    let mut told: Vec<_> = calls.map(told).collect();
    told.sort();
    let call = |number| Some(format!("scripted_build_T_001_1_1_{number}"));
    let error = Some("tool_error".to_owned());
    assert_eq!(
        told,
        [
            ("execute_tool fail".to_owned(), call(2), error.clone()),
            ("execute_tool look".to_owned(), call(1), None),
            ("execute_tool unknown".to_owned(), call(3), error),
        ]
    );
    let everything = receiver.text();
    assert!(!everything.contains("canary"), "{everything}");
    store.close().await?;
    Ok(())
}
