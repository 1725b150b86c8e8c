//! Stores every reply before it is acted on, and replays it when the same work runs again.

use chrono::TimeDelta;
use ropewalk_llm::{ModelError, Reply, Usage};
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::{ChangeSet, CommitError, Store};
use serde_json::Value;

use crate::error::EngineError;
use crate::job::{Job, ModelEntry};

/// Reads and writes the journal of one job.
pub(crate) struct Journal<'a> {
    store: &'a Store,
    clock: &'a Clock,
    job: &'a Job,
}

/// Who gave an answer, and how long it took.
pub(crate) struct Asked<'a> {
    /// Who.
    pub(crate) entry: &'a ModelEntry,
    /// How long.
    pub(crate) took: TimeDelta,
}

impl<'a> Journal<'a> {
    /// Opens the journal of `job`.
    pub(crate) fn new(store: &'a Store, clock: &'a Clock, job: &'a Job) -> Self {
        Self { store, clock, job }
    }

    /// Returns the reply that was stored for `turn`, and the provider that gave it.
    pub(crate) async fn replay(
        &self,
        turn: u32,
    ) -> Result<Option<(Reply, Option<String>)>, EngineError> {
        let key = self.key(turn);
        let Some(call) = self.store.get::<ModelCall>(&key).await? else {
            return Ok(None);
        };
        let ModelCall {
            reply, provider, ..
        } = call.record;
        serde_json::from_value(reply)
            .map(|reply| Some((reply, provider)))
            .map_err(|error| EngineError::JournalEntry {
                key,
                reason: error.to_string(),
            })
    }

    /// Stores a reply and returns the one that counts: another run of the same work may have been faster.
    pub(crate) async fn record(
        &self,
        turn: u32,
        reply: Reply,
        asked: &Asked<'_>,
    ) -> Result<Reply, EngineError> {
        let key = self.key(turn);
        let body = serde_json::to_value(&reply).map_err(|error| EngineError::JournalEntry {
            key: key.clone(),
            reason: error.to_string(),
        })?;
        let call = ModelCall {
            reply: body,
            duration_ms: u64::try_from(asked.took.num_milliseconds()).ok(),
            ..self.call(key, asked.entry, &reply.model, &reply.usage)
        };
        match self.insert(&call).await {
            Ok(()) => Ok(reply),
            Err(CommitError::Conflict { .. }) => {
                let known = self.replay(turn).await?;
                Ok(known.map_or(reply, |(known, _)| known))
            }
            Err(CommitError::Oversized { limit_bytes, .. }) => {
                let limit_bytes = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
                let error = ModelError::TooLong { limit_bytes };
                let refusal = error.to_string();
                self.spend(turn, asked.entry, &reply.usage, &refusal)
                    .await?;
                Err(error.into())
            }
            Err(error) => Err(EngineError::Journal(error)),
        }
    }

    /// Writes down what was paid for a reply that is not kept. The turn stays open: whoever runs the work again asks
    /// again, within the budgets.
    pub(crate) async fn spend(
        &self,
        turn: u32,
        entry: &ModelEntry,
        usage: &Usage,
        refusal: &str,
    ) -> Result<(), EngineError> {
        let key = format!("{}/{}", self.key(turn), self.clock.now().timestamp_micros());
        let call = ModelCall {
            refusal: Some(refusal.to_owned()),
            ..self.call(key, entry, &entry.name, usage)
        };
        self.insert(&call).await.map_err(EngineError::Journal)
    }

    async fn insert(&self, call: &ModelCall) -> Result<(), CommitError> {
        let mut changes = ChangeSet::new();
        changes.insert(call);
        self.store.commit(changes).await.map(|_| ())
    }

    /// A call without its reply.
    fn call(&self, key: String, entry: &ModelEntry, model: &str, usage: &Usage) -> ModelCall {
        let scope = &self.job.scope;
        ModelCall {
            key,
            role: self.job.role.as_str().to_owned(),
            model: model.to_owned(),
            provider: Some(entry.model.name().to_owned()),
            idea: scope.idea.clone(),
            build: scope.build,
            task: scope.task.clone(),
            reply: Value::Null,
            refusal: None,
            input_tokens: usage.total_input_tokens(),
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            duration_ms: None,
            micro_usd: entry.micro_usd(model, usage),
            at: self.clock.now(),
        }
    }

    /// Names a turn.
    pub(crate) fn key(&self, turn: u32) -> String {
        format!("{}/{turn}", self.job.journal_key)
    }
}
