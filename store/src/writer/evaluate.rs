//! Decides which change sets of a batch hold and what is to be written; pure.

mod delivery;
mod lease;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{ComponentName, EventId};

use crate::change_set::{Change, Precondition, Row, RowChange, Write};
use crate::deliveries::{DeliveryKey, DeliveryState};
use crate::error::CommitError;
use crate::events::{CommitOutcome, StoredEvent, Subscription};
use crate::record::Table;
use crate::submission::{EncodedEvent, Submission};

/// The subscriptions as of one epoch; another process may have moved on.
#[derive(Debug, Clone)]
pub(crate) struct Routing {
    pub(crate) epoch: i64,
    pub(crate) subscriptions: Vec<Subscription>,
}

impl Routing {
    /// Returns the routing of no epoch, so that the first batch loads the real one.
    pub(crate) fn unknown() -> Self {
        Self {
            epoch: -1,
            subscriptions: Vec::new(),
        }
    }

    fn subscribers(&self, event: &EncodedEvent) -> Vec<ComponentName> {
        self.subscriptions
            .iter()
            .filter(|subscription| subscription.takes(&event.event.event_type, &event.event.source))
            .map(|subscription| subscription.name.clone())
            .collect()
    }
}

/// How many deliveries may be open before nothing new is taken in; what is there goes on.
pub(crate) const BACKLOG_LIMIT: i64 = 50_000;

/// Names a row of a table of records.
pub(crate) type RowId = (&'static str, String);

/// A row as it is in the database; the body is loaded for leases only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoadedRow {
    pub(crate) version: i64,
    pub(crate) body: Option<String>,
}

/// A delivery as it is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadedDelivery {
    pub(crate) state: DeliveryState,
    pub(crate) attempts: u32,
}

/// What the database holds of everything that a batch touches.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedState {
    pub(crate) rows: HashMap<RowId, LoadedRow>,
    pub(crate) deliveries: HashMap<DeliveryKey, LoadedDelivery>,
    /// Those events of the batch that are stored already.
    pub(crate) events: HashSet<EventId>,
    pub(crate) last_sequence: i64,
    pub(crate) token: i64,
    /// Lies above every version of every deleted row.
    pub(crate) floor: i64,
    pub(crate) epoch: i64,
    /// How many deliveries are open, counted up to [`BACKLOG_LIMIT`] where it matters.
    pub(crate) open: i64,
}

/// A row after the batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FinalRow {
    Written {
        table: &'static Table,
        version: i64,
        row: Arc<Row>,
    },
    Deleted,
}

/// A delivery row that a batch adds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewDelivery {
    pub(crate) key: DeliveryKey,
    pub(crate) entity: String,
    pub(crate) priority: u8,
}

/// A delivery row after the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinalDelivery {
    pub(crate) state: DeliveryState,
    pub(crate) attempts: u32,
    pub(crate) due: DateTime<Utc>,
    pub(crate) error: Option<String>,
    pub(crate) closed_at: Option<DateTime<Utc>>,
}

/// Everything that a batch writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Writes {
    pub(crate) rows: BTreeMap<RowId, FinalRow>,
    pub(crate) events: Vec<(i64, Arc<EncodedEvent>)>,
    pub(crate) event_ids: HashSet<EventId>,
    pub(crate) deliveries: Vec<NewDelivery>,
    pub(crate) closes: BTreeMap<DeliveryKey, FinalDelivery>,
    pub(crate) token: Option<i64>,
    pub(crate) floor: Option<i64>,
}

impl Writes {
    /// Returns whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.events.extend(other.events);
        self.event_ids.extend(other.event_ids);
        self.deliveries.extend(other.deliveries);
        self.closes.extend(other.closes);
        self.token = other.token.or(self.token);
        self.floor = other.floor.or(self.floor);
    }
}

/// What came of a batch: an answer for each change set, and the writes of the winners together.
#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) answers: Vec<Result<Arc<CommitOutcome>, CommitError>>,
    pub(crate) writes: Writes,
}

/// Decides the change sets in order; each sees the winners before it, and a loser leaves no trace.
pub(crate) fn evaluate(
    loaded: &LoadedState,
    routing: &Routing,
    batch: &[Submission],
    now: DateTime<Utc>,
) -> Evaluation {
    let mut writes = Writes::default();
    let answers = batch
        .iter()
        .map(|submission| {
            let draft = Draft {
                loaded,
                routing,
                earlier: &writes,
                own: Writes::default(),
                emitted: Vec::new(),
                now,
            };
            let (own, committed) = draft.decide(submission)?;
            writes.absorb(own);
            Ok(Arc::new(committed))
        })
        .collect();
    Evaluation { answers, writes }
}

/// One change set on its way to a verdict.
struct Draft<'a> {
    loaded: &'a LoadedState,
    routing: &'a Routing,
    /// What the winners before it write.
    earlier: &'a Writes,
    /// What it writes itself.
    own: Writes,
    emitted: Vec<StoredEvent>,
    now: DateTime<Utc>,
}

impl Draft<'_> {
    fn decide(mut self, submission: &Submission) -> Result<(Writes, CommitOutcome), CommitError> {
        if self.loaded.open >= BACKLOG_LIMIT && submission.is_intake() {
            return Err(CommitError::Backlog {
                open: self.loaded.open,
                limit: BACKLOG_LIMIT,
            });
        }
        let mut events = submission.events.iter();
        for change in &submission.changes {
            match change {
                Change::Row(row) => self.row(row)?,
                Change::Emit(_) => {
                    if let Some(event) = events.next() {
                        self.emit(event)?;
                    }
                }
                Change::Close(key, outcome) => self.close(key, outcome)?,
                Change::Grant(lease) => self.grant(lease)?,
                Change::Lease(path, token, action) => self.lease(path, *token, *action)?,
            }
        }
        let committed = CommitOutcome {
            events: self.emitted,
            token: self.own.token,
        };
        Ok((self.own, committed))
    }

    /// Returns the version of a row before this change set; `None` when it does not exist.
    fn version_before(&self, id: &RowId) -> Option<i64> {
        match self.earlier.rows.get(id) {
            Some(FinalRow::Written { version, .. }) => Some(*version),
            Some(FinalRow::Deleted) => None,
            None => self.loaded.rows.get(id).map(|row| row.version),
        }
    }

    fn row(&mut self, change: &RowChange) -> Result<(), CommitError> {
        let table = change.table;
        let id = (table.name, change.key.clone());
        let before = self.version_before(&id);
        let holds = match change.expected {
            Precondition::Anything => true,
            Precondition::Absent => before.is_none(),
            Precondition::Version(version) => before == Some(version),
        };
        if !holds {
            return Err(CommitError::Conflict {
                table: table.name,
                key: change.key.clone(),
            });
        }
        let twice = change.expected != Precondition::Anything && self.own.rows.contains_key(&id);
        match &change.write {
            Write::Nothing => {}
            // The second of two writes from one version would silently undo the first.
            _ if twice => {
                return Err(CommitError::Twice {
                    table: table.name,
                    key: change.key.clone(),
                });
            }
            Write::Put(row) => self.write(table, id, before, Arc::clone(row)),
            Write::Delete => self.delete(id, before),
            // Refused when it was prepared.
            Write::Impossible(_) => {}
        }
        Ok(())
    }

    fn write(&mut self, table: &'static Table, id: RowId, before: Option<i64>, row: Arc<Row>) {
        let version = before.unwrap_or_else(|| self.floor()) + 1;
        let written = FinalRow::Written {
            table,
            version,
            row,
        };
        self.own.rows.insert(id, written);
    }

    fn delete(&mut self, id: RowId, before: Option<i64>) {
        // A row that comes back must not have a version that somebody read before.
        if let Some(version) = before
            && version > self.floor()
        {
            self.own.floor = Some(version);
        }
        self.own.rows.insert(id, FinalRow::Deleted);
    }

    fn floor(&self) -> i64 {
        let newest = self.own.floor.or(self.earlier.floor);
        newest.unwrap_or(self.loaded.floor)
    }

    fn emit(&mut self, event: &Arc<EncodedEvent>) -> Result<(), CommitError> {
        let id = event.event.id;
        let stored = self.loaded.events.contains(&id) || self.earlier.event_ids.contains(&id);
        if stored || !self.own.event_ids.insert(id) {
            return Err(CommitError::Conflict {
                table: "events",
                key: id.to_string(),
            });
        }
        let before = self.earlier.events.len() + self.own.events.len();
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let sequence = self.loaded.last_sequence + before + 1;
        let subscribers = self.routing.subscribers(event);
        for subscriber in &subscribers {
            self.own.deliveries.push(NewDelivery {
                key: DeliveryKey {
                    sequence,
                    subscriber: subscriber.clone(),
                },
                entity: event.event.subject.to_string(),
                priority: event.event.priority.get(),
            });
        }
        self.own.events.push((sequence, Arc::clone(event)));
        self.emitted.push(StoredEvent {
            sequence,
            event: Arc::clone(&event.event),
            subscribers,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
