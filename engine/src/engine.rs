//! Runs jobs: ask, journal, act, ask again.

mod asking;
mod conversation;
mod early;
mod fallback;
mod images;
mod memory;
mod progress;
mod recall;
mod repair;
mod repetition;
mod room;
mod secrets;
mod session;
mod tool_call;
mod tool_calls;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use ropewalk_llm::StopReason;
use ropewalk_runtime::{Brake, Clock, Ids, idle};
use ropewalk_schemas::advice::Words;
use ropewalk_store::{ReadError, Store};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::budget::{self, Budgets};
use crate::compaction::CompactionPolicy;
use crate::current_value::CurrentValue;
use crate::error::EngineError;
use crate::event::Observer;
use crate::job::{Job, ModelEntry, Models, Outcome, UsageScope};
use crate::journal::{CallKind, Journal, Refusal};
use crate::outages;
use asking::CallFailure;

pub use recall::RecalledJob;
pub use session::Session;

/// Begins what a person says into a conversation.
const SAYS: &str = "A person says: ";

/// Runs jobs on the models of the project. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    store: Store,
    past: Option<Store>,
    models: CurrentValue<Models>,
    clock: Clock,
    ids: Ids,
    budgets: Budgets,
    brake: Brake,
    compaction: Option<Arc<CompactionPolicy>>,
}

impl Engine {
    /// Makes an engine that journals in `store`.
    pub fn new(store: Store, models: Models, clock: Clock) -> Self {
        Self {
            store,
            past: None,
            models: CurrentValue::new(models),
            ids: Ids::system(clock.clone()),
            clock,
            budgets: Budgets::default(),
            brake: Brake::default(),
            compaction: None,
        }
    }

    /// Takes what was answered to the same work in another store for known: the work is done again, and nobody is asked
    /// what was asked then.
    #[must_use]
    pub fn remembering(mut self, past: Store) -> Self {
        self.past = Some(past);
        self
    }

    /// Asks no model while `brake` is on.
    #[must_use]
    pub fn held_by(mut self, brake: Brake) -> Self {
        self.brake = brake;
        self
    }

    /// Returns what holds its calls, and with them whatever would begin only to make one.
    pub fn brake(&self) -> &Brake {
        &self.brake
    }

    /// Sets the budgets that every job has to keep to.
    #[must_use]
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Makes room in conversations that grow too long; without it they end where the window of their model does.
    #[must_use]
    pub fn with_compaction(mut self, policy: CompactionPolicy) -> Self {
        self.compaction = Some(Arc::new(policy));
        self
    }

    /// Returns the models it asks now.
    pub fn models(&self) -> Arc<Models> {
        self.models.now()
    }

    /// Asks `models` from the next turn of each job on.
    pub fn use_models(&self, models: Models) {
        self.models.replace(models);
    }

    /// Looks after providers that are away, until `ending`; without it they are never asked again.
    pub async fn watch_outages(&self, ending: CancellationToken) {
        outages::watch(self.outages(), ending).await;
    }

    fn outages(&self) -> outages::Outages<'_> {
        outages::Outages {
            store: &self.store,
            clock: &self.clock,
            ids: &self.ids,
            models: &self.models,
            brake: &self.brake,
        }
    }

    /// Runs `job` to its end. A job whose key was run before gets the same replies again, as far as they go.
    pub fn run<'a>(
        &'a self,
        job: &'a Job,
        cancel: &'a CancellationToken,
        observer: &'a dyn Observer,
    ) -> BoxFuture<'a, Result<Outcome, EngineError>> {
        // Boxed here, so that a caller whose own future must be `Send` need not prove it of everything in this one.
        async move { self.open(job)?.run(cancel, observer).await }.boxed()
    }

    /// Opens `job` for a caller who judges its results: one that does not hold is sent back into the same conversation.
    pub fn open<'a>(&'a self, job: &'a Job) -> Result<Session<'a>, EngineError> {
        Session::open(self, job)
    }

    /// Recalls how `job` came to its result, with the results of its calls made anew. Nothing is asked: none where it came to
    /// no result, may have changed something, or stands in the journal no more.
    pub async fn recall<'a>(
        &'a self,
        job: &'a Job,
    ) -> Result<Option<RecalledJob<'a>>, EngineError> {
        recall::recall(self, job).boxed().await
    }

    /// Says what the budgets left for calls of `scope` at a time, a line each; those that limit nothing have none.
    pub async fn budget_left(
        &self,
        scope: &UsageScope,
        at: DateTime<Utc>,
    ) -> Result<Vec<String>, ReadError> {
        budget::left(&self.store, &self.budgets, scope, at).await
    }

    /// What was answered before costs nothing, so only a new call has to be within the budgets.
    async fn check_budgets(&self, job: &Job) -> Result<(), EngineError> {
        let exceeded =
            budget::first_exceeded(&self.store, &self.clock, &self.budgets, &job.scope).await?;
        exceeded.map_or(Ok(()), |exceeded| {
            Err(EngineError::Budget(Box::new(exceeded)))
        })
    }
}

impl Engine {
    /// While a provider is away, nobody waits for it in vain.
    async fn check_outage(&self, entry: &ModelEntry) -> Result<(), EngineError> {
        let outage = outages::standing(&self.store, entry.model.name()).await?;
        outage.map_or(Ok(()), |outage| Err(EngineError::Outage(Box::new(outage))))
    }

    /// Writes down what a broken reply has cost, and that its provider is away, where that is why; returns the reason.
    async fn broke(
        &self,
        journal: &Journal<'_>,
        turn: u32,
        entry: &ModelEntry,
        broken: CallFailure,
    ) -> EngineError {
        let CallFailure { error, usage } = broken;
        if let Some(usage) = usage {
            let refusal = Refusal::from(&error);
            let call = (turn, CallKind::Work);
            if let Err(unwritten) = journal.spend(call, entry, &usage, refusal).await {
                warn!("what a broken reply has cost could not be written down: {unwritten}");
            }
            idle::end_here().await;
            // Who has begun to answer is there.
            return error;
        }
        let EngineError::Model(why) = &error else {
            idle::end_here().await;
            return error;
        };
        let key = journal.key(turn);
        match self.outages().meet(entry, &key, why).await {
            Ok(Some(outage)) => EngineError::Outage(Box::new(outage)),
            Ok(None) => error,
            Err(unwritten) => {
                warn!(
                    "an outage could not be written down: {}",
                    Words::of(&unwritten)
                );
                error
            }
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// Says whether a reply with this reason is whole, so that its calls may be run.
fn is_whole(stop: &StopReason) -> bool {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_) => true,
        StopReason::MaxTokens | StopReason::ContentFilter => false,
    }
}
