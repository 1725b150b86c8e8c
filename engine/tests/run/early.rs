//! What only reads is begun while the reply still comes; everything else waits for the journal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use ropewalk_engine::{AgentMode, JobEvent, Observer, tools_of};
use ropewalk_llm::{
    Block, Delta, Model, ModelError, ModelRequest, Reply, ReplyStream, StopReason, ToolUse, Usage,
};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::Query;
use ropewalk_world::provider::WireFormat;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::support::{ScriptedEngine, job, workbench};
use crate::transport;

/// Notes which tools have begun and ended.
struct Watcher {
    begun: Mutex<Vec<String>>,
    skipped: AtomicBool,
    ended: Arc<Semaphore>,
}

impl Watcher {
    fn new() -> Self {
        Self {
            begun: Mutex::default(),
            skipped: AtomicBool::default(),
            ended: Arc::new(Semaphore::new(0)),
        }
    }

    fn begun(&self) -> Vec<String> {
        let begun = self.begun.lock();
        begun.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Watcher {
    fn see(&self, event: JobEvent) {
        match event {
            JobEvent::ToolStarted { item, .. } => {
                let begun = self.begun.lock();
                begun.unwrap_or_else(PoisonError::into_inner).push(item);
            }
            JobEvent::ToolEnded { .. } => self.ended.add_permits(1),
            JobEvent::ToolSkipped { .. } => self.skipped.store(true, Ordering::SeqCst),
            _ => {}
        }
    }
}

/// Makes its calls, waits until so many tools have ended and a while longer, and ends as told; then says that it is done.
struct Slow {
    calls: Vec<ToolUse>,
    waits_for: u32,
    ended: Arc<Semaphore>,
    breaks: AtomicBool,
}

fn call(id: &str, name: &str, input: &Value) -> ToolUse {
    ToolUse::parse(id, name, &input.to_string())
}

fn reply(blocks: Vec<Block>, stop: StopReason) -> Reply {
    Reply {
        blocks,
        usage: Usage::default(),
        stop,
        model: "slow".to_owned(),
    }
}

#[async_trait]
impl Model for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        _: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        if request.messages.len() > 1 {
            let said = vec![Block::Text("Done.".to_owned())];
            return Ok(ReplyStream::of(reply(said, StopReason::EndTurn)));
        }
        let (ended, waits_for) = (self.ended.clone(), self.waits_for);
        let breaks = self.breaks.swap(false, Ordering::SeqCst);
        let blocks = self.calls.iter().cloned().map(Block::ToolUse).collect();
        let calls: Vec<_> = self.calls.iter().cloned().map(Delta::ToolUse).collect();
        let last = async move {
            // Without an early call this waits for ever.
            drop(ended.acquire_many(waits_for).await);
            tokio::time::sleep(Duration::from_millis(100)).await;
            if breaks {
                return Err(ModelError::Truncated);
            }
            Ok(Delta::Done(reply(blocks, StopReason::ToolUse)))
        };
        let calls = stream::iter(calls.into_iter().map(Ok));
        Ok(ReplyStream::new(futures::StreamExt::chain(
            calls,
            stream::once(last),
        )))
    }
}

/// Runs a job whose model makes these calls and ends its reply only when so many of them have ended.
async fn run(
    calls: Vec<ToolUse>,
    waits_for: u32,
    breaks: bool,
) -> anyhow::Result<(ScriptedEngine, Watcher, Result<(), String>, Vec<String>)> {
    let scripted = ScriptedEngine::new("[]").await?;
    let bench = workbench(&scripted)?;
    let slot = scripted.directory.path().join("slot");
    std::fs::write(slot.join("a.txt"), "one\n")?;
    let job = job(tools_of(AgentMode::Implement, &bench)?);
    let watcher = Watcher::new();
    let model = Arc::new(Slow {
        calls,
        waits_for,
        ended: watcher.ended.clone(),
        breaks: AtomicBool::new(breaks),
    });
    // Here alone a call is told to be whole before anything else comes.
    let engine = scripted.engine_on(transport::to(model, WireFormat::Messages)?);
    let cancel = CancellationToken::new();
    let running = engine.run(&job, &cancel, &watcher);
    let ran = tokio::time::timeout(Duration::from_mins(1), running).await?;
    let begun = watcher.begun();
    Ok((
        scripted,
        watcher,
        ran.map(drop).map_err(|error| error.to_string()),
        begun,
    ))
}

#[tokio::test]
async fn what_only_reads_ends_before_the_reply_does() -> anyhow::Result<()> {
    let calls = vec![
        call("1", "read", &json!({ "path": "a.txt" })),
        call("2", "grep", &json!({ "pattern": "one" })),
    ];
    let (scripted, _, ran, begun) = run(calls, 2, false).await?;
    assert_eq!(ran, Ok(()));
    assert_eq!(begun, ["1", "2"], "each runs once");
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    assert_eq!(rows.len(), 2);
    Ok(())
}

#[tokio::test]
async fn what_changes_something_and_all_behind_it_waits_until_the_reply_is_in_the_journal()
-> anyhow::Result<()> {
    let write = json!({ "path": "src/lib.rs", "content": "x\n" });
    let calls = vec![
        call("1", "read", &json!({ "path": "a.txt" })),
        call("2", "write", &write),
        call("3", "read", &json!({ "path": "src/lib.rs" })),
    ];
    // The reply breaks off after the first has ended: nothing else may have begun.
    let (scripted, watcher, ran, begun) = run(calls.clone(), 1, true).await?;
    assert!(ran.is_err(), "{ran:?}");
    assert_eq!(begun, ["1"]);
    assert!(watcher.skipped.load(Ordering::SeqCst));
    assert!(!scripted.directory.path().join("slot/src/lib.rs").exists());

    let (scripted, _, ran, begun) = run(calls, 1, false).await?;
    assert_eq!(ran, Ok(()));
    assert_eq!(begun, ["1", "2", "3"]);
    assert!(scripted.directory.path().join("slot/src/lib.rs").exists());
    Ok(())
}
