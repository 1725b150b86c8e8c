//! Stores every reply before it is acted on, and replays it when the same work runs again.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_llm::{ModelError, Reply, Usage};
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::{Compaction, ModelCall, RefusalKind, RequestPrint};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Store};
use serde_json::Value;

use crate::error::EngineError;
use crate::job::{Job, ModelEntry, ModelRole};
use crate::traced;

/// Reads and writes the journal of one job.
pub(crate) struct Journal<'a> {
    store: &'a Store,
    /// The journal of a run of the same work in another store, which is read where this one knows nothing.
    past: Option<&'a Store>,
    clock: &'a Clock,
    job: &'a Job,
}

/// Who gave an answer, and how long it took.
pub(crate) struct CallDetails<'a> {
    /// Who.
    pub(crate) entry: &'a ModelEntry,
    /// How long.
    pub(crate) took: TimeDelta,
    /// What was done to the conversation before.
    pub(crate) compaction: Option<Compaction>,
    /// What was asked.
    pub(crate) print: RequestPrint,
}

/// What a model is asked for at a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// What the job is about.
    Work,
    /// A summary of what was said before.
    Summary,
}

/// Why a reply is not kept.
pub(crate) struct Refusal {
    kind: RefusalKind,
    reason: String,
}

impl Refusal {
    /// Is that of a reply with which nobody can go on.
    pub(crate) fn broken(reason: &str) -> Self {
        Self {
            kind: RefusalKind::Broken,
            reason: reason.to_owned(),
        }
    }
}

impl From<&EngineError> for Refusal {
    fn from(error: &EngineError) -> Self {
        let kind = match error {
            EngineError::Cancelled | EngineError::Model(ModelError::Cancelled) => {
                RefusalKind::Cancelled
            }
            _ => RefusalKind::Broken,
        };
        Self {
            kind,
            reason: error.to_string(),
        }
    }
}

/// Whether a conversation went on after a reply, when it was held before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WentOn {
    /// Nothing is known that came after it.
    No,
    /// It did, in this store.
    Here,
    /// It did, in the store that is done again.
    InThePast,
}

/// An answer that is known.
pub(crate) struct JournalEntry {
    /// What was answered.
    pub(crate) reply: Reply,
    /// The provider that gave it.
    pub(crate) provider: Option<String>,
    /// What was done to the conversation before.
    pub(crate) compaction: Option<Compaction>,
    /// What was asked.
    pub(crate) asked: Option<RequestPrint>,
    /// When it came.
    pub(crate) at: DateTime<Utc>,
}

impl<'a> Journal<'a> {
    /// Opens the journal of `job`.
    pub(crate) fn new(
        (store, past): (&'a Store, Option<&'a Store>),
        clock: &'a Clock,
        job: &'a Job,
    ) -> Self {
        Self {
            store,
            past,
            clock,
            job,
        }
    }

    /// Returns what was answered at `turn`.
    pub(crate) async fn replay(&self, turn: u32) -> Result<Option<JournalEntry>, EngineError> {
        self.known(self.key(turn)).await
    }

    /// Says where a reply is known that came after that of `turn`.
    pub(crate) async fn went_on(&self, turn: u32) -> Result<WentOn, ReadError> {
        let key = self.key(turn + 1);
        if self.store.get::<ModelCall>(&key).await?.is_some() {
            return Ok(WentOn::Here);
        }
        Ok(match self.past {
            Some(past) if past.get::<ModelCall>(&key).await?.is_some() => WentOn::InThePast,
            _ => WentOn::No,
        })
    }

    /// Returns the summary that was made before the call of `turn`.
    pub(crate) async fn summary(&self, turn: u32) -> Result<Option<Reply>, EngineError> {
        let key = ModelCall::summary_key(&self.key(turn));
        Ok(self.known(key).await?.map(|known| known.reply))
    }

    async fn known(&self, key: String) -> Result<Option<JournalEntry>, EngineError> {
        let own = self.store.get::<ModelCall>(&key).await?;
        let call = match own {
            Some(call) => Some(call.record),
            None => self.remember(&key).await?,
        };
        call.map(|call| known(&key, call)).transpose()
    }

    /// Takes an answer over from the past.
    async fn remember(&self, key: &str) -> Result<Option<ModelCall>, EngineError> {
        let Some(past) = self.past else {
            return Ok(None);
        };
        let Some(call) = past.get::<ModelCall>(key).await? else {
            return Ok(None);
        };
        self.insert(&call.record)
            .await
            .map_err(EngineError::Journal)?;
        Ok(Some(call.record))
    }

    /// Stores a reply and returns the one that counts: another run of the same work may have been faster.
    pub(crate) async fn record(
        &self,
        turn: u32,
        reply: Reply,
        asked: &CallDetails<'_>,
    ) -> Result<JournalEntry, EngineError> {
        self.store_reply(turn, CallKind::Work, reply, asked).await
    }

    /// Stores a summary as [`Journal::record`] stores a reply.
    pub(crate) async fn record_summary(
        &self,
        turn: u32,
        reply: Reply,
        asked: &CallDetails<'_>,
    ) -> Result<JournalEntry, EngineError> {
        self.store_reply(turn, CallKind::Summary, reply, asked)
            .await
    }

    async fn store_reply(
        &self,
        turn: u32,
        kind: CallKind,
        reply: Reply,
        asked: &CallDetails<'_>,
    ) -> Result<JournalEntry, EngineError> {
        let (key, role) = self.named(self.key(turn), kind);
        let body = serde_json::to_value(&reply).map_err(|error| unreadable(&key, &error))?;
        let call = ModelCall {
            role: role.as_str().to_owned(),
            reply: body,
            compaction: asked.compaction,
            asked: Some(asked.print.clone()),
            duration_ms: u64::try_from(asked.took.num_milliseconds()).ok(),
            ..self.call(key.clone(), asked.entry, &reply.model, &reply.usage)
        };
        match self.insert(&call).await {
            Ok(()) => {
                traced::call(self.job, &call, &asked.entry.name);
                known(&key, call)
            }
            Err(CommitError::Conflict { .. }) => {
                let stored = self.known(key.clone()).await?;
                stored.map_or_else(|| known(&key, call), Ok)
            }
            Err(CommitError::Oversized { limit_bytes, .. }) => {
                let limit_bytes = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
                let error = EngineError::from(ModelError::TooLong { limit_bytes });
                let refusal = Refusal::from(&error);
                self.spend((turn, kind), asked.entry, &reply.usage, refusal)
                    .await?;
                Err(error)
            }
            Err(error) => Err(EngineError::Journal(error)),
        }
    }

    /// Writes down what was paid for a reply that is not kept. The turn stays open: whoever runs the work again asks
    /// again, within the budgets.
    pub(crate) async fn spend(
        &self,
        (turn, kind): (u32, CallKind),
        entry: &ModelEntry,
        usage: &Usage,
        refusal: Refusal,
    ) -> Result<(), EngineError> {
        let key = format!("{}/{}", self.key(turn), self.clock.now().timestamp_micros());
        let (key, role) = self.named(key, kind);
        let call = ModelCall {
            role: role.as_str().to_owned(),
            refusal: Some(refusal.reason),
            refusal_kind: Some(refusal.kind),
            ..self.call(key, entry, &entry.name, usage)
        };
        self.insert(&call).await.map_err(EngineError::Journal)?;
        traced::call(self.job, &call, &entry.name);
        Ok(())
    }

    /// Counts the replies of `entry` to the call of `turn` that were paid and came to nothing by who was asked. A row of before
    /// that was written down counts for none: then it is asked for a few times more.
    pub(crate) async fn broken_off(
        &self,
        turn: u32,
        entry: &ModelEntry,
    ) -> Result<usize, ReadError> {
        let key = self.key(turn);
        // Their keys go on from that of the turn with digits, which end where the colon stands.
        let spent = Query::new()
            .at_least("key", format!("{key}/0"))
            .at_most("key", format!("{key}/:"));
        let calls = self.store.list::<ModelCall>(spent).await?;
        let of_entry = |call: &ModelCall| {
            let provider = call.provider.as_deref();
            provider == Some(entry.model.name()) && call.model == entry.name && !call.is_summary()
        };
        let broke = |call: &ModelCall| call.refusal_kind == Some(RefusalKind::Broken);
        let broken = calls.iter().filter(|call| of_entry(call) && broke(call));
        Ok(broken.count())
    }

    async fn insert(&self, call: &ModelCall) -> Result<(), CommitError> {
        let mut changes = ChangeSet::new();
        changes.insert(call);
        self.store.commit(changes).await.map(|_| ())
    }

    /// Returns the key and the role of a call, whose key is `key` where it is about the work of the job.
    fn named(&self, key: String, kind: CallKind) -> (String, ModelRole) {
        match kind {
            CallKind::Work => (key, self.job.role),
            CallKind::Summary => (ModelCall::summary_key(&key), ModelRole::Small),
        }
    }

    /// A call without its reply.
    fn call(&self, key: String, entry: &ModelEntry, model: &str, usage: &Usage) -> ModelCall {
        let scope = &self.job.scope;
        ModelCall {
            traceparent: self.job.traceparent(&key),
            key,
            role: self.job.role.as_str().to_owned(),
            model: model.to_owned(),
            provider: Some(entry.model.name().to_owned()),
            idea: scope.idea.clone(),
            build: scope.build,
            task: scope.task.clone(),
            reply: Value::Null,
            compaction: None,
            asked: None,
            refusal: None,
            refusal_kind: None,
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

fn known(key: &str, call: ModelCall) -> Result<JournalEntry, EngineError> {
    let reply = serde_json::from_value(call.reply).map_err(|error| unreadable(key, &error))?;
    Ok(JournalEntry {
        reply,
        provider: call.provider,
        compaction: call.compaction,
        asked: call.asked,
        at: call.at,
    })
}

fn unreadable(key: &str, error: &serde_json::Error) -> EngineError {
    EngineError::JournalEntry {
        key: key.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_was_cancelled_is_told_from_one_that_broke_off_whatever_is_said_of_it() {
        let said = EngineError::Cancelled.to_string();
        let rows = [
            (EngineError::Cancelled, RefusalKind::Cancelled),
            (ModelError::Cancelled.into(), RefusalKind::Cancelled),
            (ModelError::Truncated.into(), RefusalKind::Broken),
            (
                ModelError::TooLong { limit_bytes: 1 }.into(),
                RefusalKind::Broken,
            ),
            (
                ModelError::Malformed {
                    message: said.clone(),
                }
                .into(),
                RefusalKind::Broken,
            ),
        ];
        for (error, kind) in rows {
            let refusal = Refusal::from(&error);
            assert_eq!((refusal.kind, refusal.reason), (kind, error.to_string()));
        }
        assert_eq!(Refusal::broken(&said).kind, RefusalKind::Broken);
    }
}
