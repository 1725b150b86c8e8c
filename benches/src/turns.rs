//! What the engine adds to a model: to a turn, to a call of a tool, and to a reply that is streamed.

mod provider;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use ropewalk_engine::llm::{PriceTable, ProviderConfig, ScriptKey, build};
use ropewalk_engine::{
    Engine, Job, JobEvent, Limits, ModelEntry, ModelRole, Models, Observer, SilentObserver, Tool,
    ToolContext, ToolFailure, ToolOutput, Toolbox, UsageScope,
};
use ropewalk_runtime::Clock;
use ropewalk_store::Store;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::sample::Times;
use provider::{Plan, Provider, RawClient, ReplyTimes};

/// How many turns a job has, and how many calls the turns of the long one.
const TURNS: u32 = 20;
const CALLS: u32 = 10;
/// What a turn may cost beside an exchange on this machine's loopback: two synced commits, of the reply and of what its tools said.
const TURN: f64 = 15.0;
/// What a further call in a turn may cost beside the same.
const CALL: f64 = 1.0;
/// How many jobs of each sort run, in turn.
const JOBS: usize = 15;

/// Measures what the engine adds.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let directory = disk::directory()?;
    let store = disk::store(directory.path()).await?;
    let provider = Provider::start().await?;
    let mut jobs = Jobs::new(&store, &provider)?;
    let mut raw = provider.connect().await?;
    let mut figures = overhead(&mut jobs, &provider, &mut raw).await?;
    figures.extend(streaming(&mut jobs, &provider, &mut raw).await?);
    store.close().await?;
    Ok(figures)
}

/// Takes a turn apart from its model, and a call apart from its turn.
async fn overhead(
    jobs: &mut Jobs<'_>,
    provider: &Provider,
    raw: &mut RawClient,
) -> Result<Vec<Figure>> {
    let (mut turns, mut calls, mut exchanges) =
        (Times::default(), Times::default(), Times::default());
    for _ in 0..JOBS {
        let none = jobs.timed(calling(0, 1)).await?;
        let one = jobs.timed(calling(TURNS, 1)).await?;
        let many = jobs.timed(calling(TURNS, CALLS)).await?;
        turns.add(one.saturating_sub(none) / TURNS);
        calls.add(many.saturating_sub(one) / (TURNS * (CALLS - 1)));
        provider.answers(calling(TURNS, 1));
        for _ in 0..TURNS {
            exchanges.add(raw.ask().await?.whole);
        }
    }
    let exchange = exchanges.millis(50)?;
    let turn = Figure::cost(
        "a turn that calls a tool which does nothing, without its model, p50",
        "ms",
        turns.millis(50)? - exchange,
    )
    .beside(exchange, "the exchange with the same provider by itself")
    .goal(Goal::Ratio(TURN));
    let call = Figure::cost(
        "each further call of a tool in a turn, p50",
        "ms",
        calls.millis(50)?,
    )
    .beside(exchange, "the same")
    .goal(Goal::Ratio(CALL));
    Ok(vec![turn, call])
}

fn calling(replies: u32, each: u32) -> Plan {
    let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Plan::Calls {
        replies: count(replies),
        each: count(each),
    }
}

/// Takes what is heard of a reply beside what the socket brings.
async fn streaming(
    jobs: &mut Jobs<'_>,
    provider: &Provider,
    raw: &mut RawClient,
) -> Result<Vec<Figure>> {
    provider.answers(Plan::Words);
    let [mut first, mut whole, mut raw_first, mut raw_whole] = [(); 4].map(|()| Times::default());
    for _ in 0..JOBS {
        let heard = jobs.heard().await?;
        first.add(heard.first);
        whole.add(heard.whole);
        let plain = raw.ask().await?;
        raw_first.add(plain.first);
        raw_whole.add(plain.whole);
    }
    let begin = Figure::cost(
        "the first word of a reply later than on the socket, p50",
        "ms",
        first.millis(50)? - raw_first.millis(50)?,
    )
    .beside(raw_first.millis(50)?, "the first word on the socket")
    .goal(Goal::Value(5.0));
    let end = Figure::cost(
        "a reply of 1,600 words to its last, p50",
        "ms",
        whole.millis(50)?,
    )
    .beside(raw_whole.millis(50)?, "the same on the socket")
    .goal(Goal::Ratio(1.05));
    Ok(vec![begin, end])
}

/// Runs jobs, each with a journal of its own.
struct Jobs<'a> {
    engine: Engine,
    provider: &'a Provider,
    number: u32,
}

impl<'a> Jobs<'a> {
    fn new(store: &Store, provider: &'a Provider) -> Result<Self> {
        let clock = Clock::system();
        let mut config = ProviderConfig::shipped("anthropic")?;
        config.base_url = provider.url();
        let models = Models::all(ModelEntry {
            model: build(&config, Some("key".into()), None, &clock)?,
            name: "m".to_owned(),
            prices: PriceTable::default(),
            window_tokens: None,
            sees_images: false,
        });
        Ok(Self {
            engine: Engine::new(store.clone(), models, clock),
            provider,
            number: 0,
        })
    }

    /// Returns how long a job takes that is answered so.
    async fn timed(&mut self, plan: Plan) -> Result<Duration> {
        self.provider.answers(plan);
        let job = self.next()?;
        let begun = Instant::now();
        let cancel = CancellationToken::new();
        let outcome = self.engine.run(&job, &cancel, &SilentObserver).await?;
        let took = begun.elapsed();
        if let Plan::Calls { replies, each } = plan {
            let ran = usize::try_from(outcome.tool_calls)?;
            ensure!(ran == replies * each, "{ran} calls ran");
        }
        Ok(took)
    }

    /// Returns when the first and the last word of a reply were heard.
    async fn heard(&mut self) -> Result<ReplyTimes> {
        let job = self.next()?;
        let listener = Listener::default();
        let begun = Instant::now();
        let cancel = CancellationToken::new();
        self.engine.run(&job, &cancel, &listener).await?;
        let heard = listener
            .0
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let (first, last) = heard.context("nothing was heard")?;
        Ok(ReplyTimes {
            first: first - begun,
            whole: last - begun,
        })
    }

    fn next(&mut self) -> Result<Job> {
        self.number += 1;
        Ok(Job {
            journal_key: format!("attempt/{}", self.number),
            role: ModelRole::Build,
            script: ScriptKey {
                agent: "build".to_owned(),
                idea: "bench".to_owned(),
                task: "T-001".to_owned(),
                attempt: 1,
                turn: 0,
            },
            scope: UsageScope::default(),
            system: "You build.".to_owned(),
            messages: vec![ropewalk_engine::llm::Message::user("Do it.")],
            tools: Toolbox::new([Arc::new(Note) as Arc<dyn Tool>])?,
            submission: None,
            limits: Limits::default(),
        })
    }
}

/// Notes when the first and the last word was heard.
#[derive(Default)]
struct Listener(Mutex<Option<(Instant, Instant)>>);

impl Observer for Listener {
    fn see(&self, event: JobEvent) {
        if let JobEvent::MessageUpdated { .. } = event {
            let now = Instant::now();
            let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *heard = Some((heard.map_or(now, |(first, _)| first), now));
        }
    }
}

/// A tool that does nothing.
struct Note;

#[async_trait]
impl Tool for Note {
    fn name(&self) -> &'static str {
        "note"
    }

    fn description(&self) -> &'static str {
        "notes a number"
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "n": { "type": "integer" } } })
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text("noted"))
    }
}
