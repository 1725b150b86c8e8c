//! The setup of these tests: a script that is recorded, a store in a temporary directory, tools that are watched.
//!
//! How the script is asked is the `transport` of the target.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ropewalk_config::Prompts;
use ropewalk_engine::{
    CompactionPolicy, Engine, EngineError, Job, Limits, ModelEntry, ModelRole, Models, Outcome,
    SilentObserver, Submission, Tool, ToolContext, ToolFailure, ToolOutput, Toolbox, UsageScope,
    Workbench, WorkbenchOptions,
};
use ropewalk_llm::{
    Block, Message, Model, ModelError, ModelRequest, PriceTable, ReplyStream, Script, ScriptKey,
    ScriptedModel,
};
use ropewalk_runtime::Clock;
use ropewalk_schemas::RepoPath;
use ropewalk_store::{Location, Store};
use ropewalk_workspace::{CommandRunner, Environment};
use ropewalk_world::provider::WireFormat;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::transport;

/// Asks a model that plays a script, and remembers every request.
pub(crate) struct RecordingModel {
    model: Arc<dyn Model>,
    requests: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for RecordingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.clone());
        self.model.stream(request, cancel).await
    }
}

/// An engine whose model plays a script, with the store and the directory that it works on.
pub(crate) struct ScriptedEngine {
    pub(crate) store: Store,
    pub(crate) directory: TempDir,
    clock: Clock,
    model: Arc<RecordingModel>,
}

impl ScriptedEngine {
    /// Opens a store and plays `script`.
    pub(crate) async fn new(script: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let clock = Clock::system();
        let location = Location::Sqlite(directory.path().join("store.db"));
        Ok(Self {
            store: Store::open(&location, clock.clone()).await?,
            model: recorded(script, &clock)?,
            directory,
            clock,
        })
    }

    /// Goes on with another script, as another process would.
    pub(crate) fn restart(&mut self, script: &str) -> anyhow::Result<()> {
        self.model = recorded(script, &self.clock)?;
        Ok(())
    }

    /// Returns an engine on the script.
    pub(crate) fn engine(&self) -> Engine {
        let models = Models::all(ModelEntry {
            model: self.model.clone(),
            name: "scripted".to_owned(),
            prices: PriceTable::default(),
            window_tokens: None,
            sees_images: true,
        });
        Engine::new(self.store.clone(), models, self.clock.clone())
    }

    /// Returns an engine on the script that makes room above so many tokens.
    pub(crate) fn compacting(&self, threshold_tokens: u64) -> anyhow::Result<Engine> {
        Ok(self.engine().with_compaction(CompactionPolicy {
            threshold_tokens,
            prompts: Prompts::shipped()?,
        }))
    }

    /// Returns an engine on another model, whose clock does not make a test wait.
    pub(crate) fn engine_on(&self, model: Arc<dyn Model>) -> Engine {
        self.engine_with(Models::all(entry(model, "m")))
    }

    /// Returns an engine on these models.
    pub(crate) fn engine_with(&self, models: Models) -> Engine {
        Engine::new(self.store.clone(), models, self.clock.clone())
    }

    /// Runs a job to its end.
    pub(crate) async fn run(&self, job: &Job) -> Result<Outcome, EngineError> {
        self.engine()
            .run(job, &CancellationToken::new(), &SilentObserver)
            .await
    }

    /// Returns every request so far.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.model
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the results that the last request carried last, with whether each is an error.
    pub(crate) fn last_results(&self) -> Vec<(String, bool)> {
        let requests = self.requests();
        let last = requests.last().and_then(|request| request.messages.last());
        last.map(results).unwrap_or_default()
    }
}

/// A model whose price is unknown.
pub(crate) fn entry(model: Arc<dyn Model>, name: &str) -> ModelEntry {
    ModelEntry {
        model,
        name: name.to_owned(),
        prices: PriceTable::default(),
        window_tokens: None,
        sees_images: true,
    }
}

fn recorded(script: &str, clock: &Clock) -> anyhow::Result<Arc<RecordingModel>> {
    let model = ScriptedModel::new(Script::parse(script)?, clock.clone());
    Ok(Arc::new(RecordingModel {
        model: transport::to(Arc::new(model), WireFormat::of(script))?,
        requests: Mutex::new(Vec::new()),
    }))
}

/// Returns the results that a message carries, with whether each is an error.
pub(crate) fn results(message: &Message) -> Vec<(String, bool)> {
    message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult {
                content, is_error, ..
            } => Some((content.clone(), *is_error)),
            _ => None,
        })
        .collect()
}

/// A job that ends with text.
pub(crate) fn job(tools: Toolbox) -> Job {
    Job {
        journal_key: format!("attempt/{}", uuid::Uuid::from_u128(7)),
        role: ModelRole::Build,
        script: ScriptKey {
            agent: "build".to_owned(),
            idea: "habits".to_owned(),
            task: "T-001".to_owned(),
            attempt: 1,
            turn: 0,
        },
        scope: UsageScope::default(),
        system: "You build.".to_owned(),
        messages: vec![Message::user("Do it.")],
        tools,
        submission: None,
        limits: Limits::default(),
    }
}

/// A submission of a number up to 9.
pub(crate) fn submission(repairs: u32) -> Submission {
    Submission {
        name: "finish".to_owned(),
        description: "Ends the work.".to_owned(),
        schema: json!({
            "type": "object",
            "properties": { "number": { "type": "integer" } },
            "required": ["number"],
        }),
        draft: None,
        check: Arc::new(|value| {
            if value["number"].as_i64() <= Some(9) {
                Ok(())
            } else {
                Err(vec!["`number` is above 9".to_owned()])
            }
        }),
        repairs,
    }
}

/// A tool that only counts; its behaviour goes by its name.
pub(crate) struct Counter {
    name: &'static str,
    safe: bool,
    pub(crate) runs: AtomicUsize,
    running: Arc<AtomicUsize>,
    pub(crate) peak: AtomicUsize,
}

impl Counter {
    /// A tool that may run beside others.
    pub(crate) fn safe(name: &'static str, running: &Arc<AtomicUsize>) -> Arc<Self> {
        Self::new(name, true, running)
    }

    /// A tool that has to run alone.
    pub(crate) fn alone(name: &'static str, running: &Arc<AtomicUsize>) -> Arc<Self> {
        Self::new(name, false, running)
    }

    fn new(name: &'static str, safe: bool, running: &Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            name,
            safe,
            runs: AtomicUsize::new(0),
            running: running.clone(),
            peak: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Tool for Counter {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "counts"
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "n": { "type": "integer" } } })
    }

    fn concurrency_safe(&self) -> bool {
        self.safe
    }

    async fn execute(&self, input: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(running, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        match self.name {
            "fail" => Ok(ToolOutput::error("it failed")),
            "end" => Err(ToolFailure::Ended("the files are gone".to_owned())),
            _ => Ok(
                ToolOutput::text(format!("{} {} run {run}", self.name, input["n"]))
                    .with_metadata(json!({ "hidden": "only for the watcher" })),
            ),
        }
    }
}

/// Counts calls of a tool that may run beside others, in a toolbox of its own.
pub(crate) fn counting() -> anyhow::Result<(Toolbox, Arc<Counter>)> {
    let counter = Counter::safe("count", &Arc::default());
    let toolbox = Toolbox::new([counter.clone() as Arc<dyn Tool>])?;
    Ok((toolbox, counter))
}

/// The tools of an attempt that may write `src/lib.rs` in an empty slot.
pub(crate) fn workbench(scripted: &ScriptedEngine) -> anyhow::Result<Workbench> {
    let root = scripted.directory.path().join("slot");
    std::fs::create_dir_all(&root)?;
    Ok(Workbench::open(WorkbenchOptions {
        writable: vec![RepoPath::parse("src/lib.rs")?],
        runner: CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")])),
        ..WorkbenchOptions::looking(root, scripted.directory.path().join("spill"))
    })?)
}
