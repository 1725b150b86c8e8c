//! Keeps the rows of providers that are away: nobody asks those, save one probe at a time, and the first answer ends it.
//!
//! A row stands from the first call that nobody would have been served with, over restarts and for every process. Row,
//! alert and event are one commit; whoever waits looks at the row.

mod decide;

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_llm::{Message, ModelError, ModelRequest, Usage};
use ropewalk_runtime::{Brake, Clock, Ids, traces};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::payload::{AlertCleared, ProviderDown};
use ropewalk_schemas::{
    ComponentName, CorrelationId, Event, EventId, Payload, Priority, Subject, trace,
};
use ropewalk_store::{
    ChangeSet, CommitError, CommitOrRead, Query, ReadError, Store, Versioned, retry_on_conflict,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::current_value::CurrentValue;
use crate::job::{ModelEntry, ModelRole, Models};
use decide::{After, class_of, next_probe};

/// How often the rows are looked at without a call, for what other processes wrote.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a probe may take. With the longest pause between two this is how late a provider is found to be back.
const PROBE_TAKES: Duration = Duration::from_secs(15);
/// Who speaks of outages.
const SOURCE: &str = "engine";
/// What a probe asks.
const PROBE: &str = "Answer with one word.";
/// The most tokens that a probe may be answered with.
const PROBE_TOKENS: u32 = 16;

/// Returns the outage of `provider`, if it is away.
pub async fn standing(store: &Store, provider: &str) -> Result<Option<Outage>, ReadError> {
    let row = store.get::<Outage>(provider).await?;
    Ok(row.map(Versioned::into_inner).filter(Outage::stands))
}

/// Returns the outage that keeps `role` from work: that of its model, where nobody who is there takes over.
pub async fn of_role(
    store: &Store,
    models: &Models,
    role: ModelRole,
) -> Result<Option<Outage>, ReadError> {
    let mut first = None;
    for entry in models.ladder(role) {
        match standing(store, entry.model.name()).await? {
            Some(outage) => first = first.or(Some(outage)),
            None => return Ok(None),
        }
    }
    Ok(first)
}

/// Lists the outages that stand.
async fn all_standing(store: &Store) -> Result<Vec<Outage>, ReadError> {
    let rows = store.list::<Outage>(Query::new().equal("open", 1)).await?;
    Ok(rows.into_iter().map(Versioned::into_inner).collect())
}

/// Has an outage looked at again at once, on the word of a person; answers whether there is one.
pub async fn look_again(
    changes: &mut ChangeSet,
    store: &Store,
    provider: &str,
    now: DateTime<Utc>,
) -> Result<bool, ReadError> {
    let row = store.get::<Outage>(provider).await?;
    let Some(row) = row.filter(|row| row.stands()) else {
        return Ok(false);
    };
    let after = Outage {
        probe_at: Some(now),
        ..row.record.clone()
    };
    changes.update(&row, &after);
    Ok(true)
}

/// Writes outages down and ends them.
pub(crate) struct Outages<'a> {
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a Clock,
    pub(crate) ids: &'a Ids,
    pub(crate) models: &'a CurrentValue<Models>,
    pub(crate) brake: &'a Brake,
}

impl Outages<'_> {
    /// Writes down that the call `key` met `error`; returns the outage that stands then, and none where the call itself
    /// is at fault.
    pub(crate) async fn meet(
        &self,
        entry: &ModelEntry,
        key: &str,
        error: &ModelError,
    ) -> Result<Option<Outage>, CommitOrRead> {
        let Some(class) = class_of(error) else {
            return Ok(None);
        };
        let provider = entry.model.name();
        retry_on_conflict!(CommitOrRead, provider, {
            let row = self.store.get::<Outage>(provider).await?;
            let known = row.as_ref().map(|row| &row.record);
            let now = self.clock.now();
            let Some(outage) = decide::met(known, provider, key, &class, error, now) else {
                return Ok(Some(None));
            };
            let outage = Outage {
                roles: self.roles(provider),
                ..outage
            };
            let mut changes = ChangeSet::new();
            match &row {
                Some(row) => changes.update(row, &outage),
                None => changes.insert(&outage),
            };
            let stood = known.is_some_and(Outage::stands);
            if !stood {
                self.tell(&mut changes, &outage);
            }
            // Another call may meet it at the same time.
            self.store.commit(changes).await?;
            if !stood {
                warn!(model.provider = provider, "{outage}: {}", outage.last_error);
            }
            Ok(Some(Some(outage)))
        })
    }

    fn roles(&self, provider: &str) -> Vec<String> {
        let models = self.models.now();
        let roles = models.roles();
        let used = roles
            .iter()
            .filter(|(_, entry)| entry.model.name() == provider);
        let mut roles: Vec<String> = used.map(|(role, _)| role.as_str().to_owned()).collect();
        roles.dedup();
        roles
    }

    /// Raises the alert of an outage.
    fn tell(&self, changes: &mut ChangeSet, outage: &Outage) {
        let severity = Severity::Critical;
        changes.put(&Alert {
            cause: Outage::cause(&outage.provider),
            severity,
            message: format!("{}: {}", outage.in_words(), outage.last_error),
            build: None,
            raised_at: outage.since,
            escalations: 0,
            acknowledged: None,
            cleared_at: None,
        });
        let payload = Payload::ProviderDown(ProviderDown {
            provider: outage.provider.clone(),
            class: outage.class.clone(),
            error: outage.last_error.clone(),
            severity: Some(severity),
        });
        changes.emit(self.event(payload));
    }

    async fn end(&self, row: &Versioned<Outage>, why: &str) -> Result<(), CommitOrRead> {
        let now = self.clock.now();
        let mut changes = ChangeSet::new();
        changes.update(row, &decide::ended(row, now));
        let cause = Outage::cause(&row.provider);
        let alert = self.store.get::<Alert>(&cause).await?;
        if let Some(alert) = alert.filter(|alert| alert.cleared_at.is_none()) {
            let after = Alert {
                cleared_at: Some(now),
                ..alert.record.clone()
            };
            changes.update(&alert, &after);
        }
        let message = format!("provider `{}` {why}", row.provider);
        info!(model.provider = %row.provider, "{message}");
        changes.emit(self.event(Payload::ProviderDownCleared(AlertCleared {
            cause,
            message,
        })));
        self.store.commit(changes).await?;
        Ok(())
    }

    fn event(&self, payload: Payload) -> Event {
        let source = ComponentName::parse(SOURCE).unwrap_or_else(|_| unreachable!("a plain word"));
        let (id, chain) = (EventId(self.ids.next()), CorrelationId(self.ids.next()));
        let is_sent = traces::is_sent(&trace::trace_id(chain));
        Event {
            id,
            subject: Subject::component(&source),
            source,
            time: self.clock.now(),
            correlation_id: chain,
            causation_id: None,
            hop: 0,
            traceparent: Some(trace::of_event(chain, id, is_sent)),
            priority: Priority::DEFAULT,
            payload,
        }
    }

    /// Looks once at every outage; returns when the next one is due.
    async fn look(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Option<DateTime<Utc>>, CommitOrRead> {
        let rows = self.store.list::<Outage>(Query::new().equal("open", 1));
        let mut next: Option<DateTime<Utc>> = None;
        for row in rows.await? {
            let models = self.models.now();
            let Some(entry) = models.of_provider(&row.provider) else {
                self.end(&row, "is used no more").await?;
                continue;
            };
            match row.probe_at {
                Some(at) if at <= self.clock.now() => self.try_again(&row, entry, cancel).await?,
                Some(at) => next = Some(next.map_or(at, |known| known.min(at))),
                None => {}
            }
        }
        Ok(next)
    }

    /// Probes a provider, unless another process does so already, and writes down what came of it.
    async fn try_again(
        &self,
        row: &Versioned<Outage>,
        entry: &ModelEntry,
        cancel: &CancellationToken,
    ) -> Result<(), CommitOrRead> {
        self.brake.pass(cancel).await;
        let taken = Outage {
            probes: row.probes.saturating_add(1),
            probe_at: Some(self.clock.now() + PROBE_TAKES + next_probe(row.probes)),
            ..row.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(row, &taken);
        match self.store.commit(changes).await {
            Err(CommitError::Conflict { .. }) => return Ok(()),
            committed => committed.map(drop)?,
        }
        let met = tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            met = probe(entry, self.clock, cancel) => met,
        };
        let Some(row) = self.store.get::<Outage>(&taken.provider).await? else {
            return Ok(());
        };
        match decide::after_probe(&row, met.as_ref().err(), self.clock.now()) {
            After::Back => {
                if let Ok(usage) = &met {
                    self.charge(entry, usage).await?;
                }
                self.end(&row, "answers again").await
            }
            After::Away { outage, tell } => {
                let mut changes = ChangeSet::new();
                changes.update(&row, &outage);
                if tell {
                    self.tell(&mut changes, &outage);
                }
                self.store.commit(changes).await?;
                Ok(())
            }
        }
    }

    /// Writes down what an answered probe has cost.
    async fn charge(&self, entry: &ModelEntry, usage: &Usage) -> Result<(), CommitOrRead> {
        let now = self.clock.now();
        let cost = entry.prices.cost(&entry.name, usage);
        let mut changes = ChangeSet::new();
        changes.put(&ModelCall {
            key: format!("probe/{}/{}", entry.model.name(), now.timestamp_micros()),
            role: "probe".to_owned(),
            model: entry.name.clone(),
            provider: Some(entry.model.name().to_owned()),
            idea: None,
            build: None,
            task: None,
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
            traceparent: None,
            micro_usd: cost.map(|cost| cost.micro_usd),
            at: now,
        });
        self.store.commit(changes).await?;
        Ok(())
    }
}

/// Looks after outages until `ending`: what the process before left is looked at at once, since it may be mended now.
pub(crate) async fn watch(outages: Outages<'_>, ending: CancellationToken) {
    let mut feed = outages.store.feed();
    if let Err(error) = all_again(&outages).await {
        warn_of(&error);
    }
    while !ending.is_cancelled() {
        let next = match outages.look(&ending).await {
            Ok(next) => next,
            // Another process was faster, or the store is busy; the next look sees what is there then.
            Err(CommitOrRead::Commit(CommitError::Conflict { .. })) => None,
            Err(error) => {
                warn_of(&error);
                None
            }
        };
        let clock = outages.clock;
        let due = next.map(|at| (at - clock.now()).to_std().unwrap_or_default());
        tokio::select! {
            () = ending.cancelled() => break,
            committed = feed.next() => {
                if committed.is_none() {
                    break;
                }
            }
            () = clock.sleep(due.map_or(LOOK_EVERY, |due| due.min(LOOK_EVERY))) => {}
        }
    }
}

fn warn_of(error: &CommitOrRead) {
    warn!(
        "the providers that are away could not be looked at: {}",
        Words::of(error)
    );
}

/// Has every outage looked at now.
async fn all_again(outages: &Outages<'_>) -> Result<(), CommitOrRead> {
    for outage in all_standing(outages.store).await? {
        let mut changes = ChangeSet::new();
        let (store, now) = (outages.store, outages.clock.now());
        look_again(&mut changes, store, &outage.provider, now).await?;
        match store.commit(changes).await {
            Err(CommitError::Conflict { .. }) => {}
            committed => committed.map(drop)?,
        }
    }
    Ok(())
}

/// Asks a provider for one word, once.
async fn probe(
    entry: &ModelEntry,
    clock: &Clock,
    cancel: &CancellationToken,
) -> Result<Usage, ModelError> {
    let request = ModelRequest {
        max_output_tokens: PROBE_TOKENS,
        once: true,
        ..ModelRequest::new(&entry.name, "", vec![Message::user(PROBE)])
    };
    let given_up = cancel.child_token();
    let too_slow = clock.sleep(PROBE_TAKES);
    tokio::select! {
        answered = entry.model.ask(&request, &given_up) => answered.map(|reply| reply.usage),
        () = too_slow => {
            given_up.cancel();
            Err(ModelError::Network { message: format!("no answer within {PROBE_TAKES:?}") })
        }
    }
}
