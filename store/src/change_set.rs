//! Holds a change as data: what is to be written, emitted, closed and fenced together, or not at all.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_runtime::secrets;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::{Event, RepoPath};

use crate::deliveries::DeliveryKey;
use crate::record::{Record, Table, Versioned};

/// What is to happen in one transaction.
///
/// A change set is data, not a closure: it can be logged, compared in a test, merged with another, and
/// committed together with others in one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChangeSet {
    pub(crate) changes: Vec<Change>,
}

/// One line of a change set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Row(RowChange),
    Emit(Box<Event>),
    Close(DeliveryKey, Outcome),
    Grant(Box<Lease>),
    Lease(RepoPath, i64, LeaseAction),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowChange {
    pub(crate) table: &'static Table,
    pub(crate) key: String,
    pub(crate) expected: Precondition,
    pub(crate) write: Write,
}

/// Says what a row must be like before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precondition {
    Absent,
    Version(i64),
    Anything,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    Nothing,
    Put(Arc<Row>),
    Delete,
    /// The record could not be turned into JSON; the reason.
    Impossible(String),
}

/// A row in the form it is written in, made where the record is known and not in the writer, which has one thread.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The record as JSON.
    pub(crate) body: String,
    /// Key, columns and body as elements of a JSON array, without its brackets.
    pub(crate) elements: String,
}

impl Row {
    pub(crate) fn of<R: Record>(record: &R) -> serde_json::Result<Self> {
        let mut body = serde_json::to_string(record)?;
        secrets::strike_out(&mut body);
        let mut elements = serde_json::to_string(&record.key())?;
        for column in record.columns() {
            elements.push(',');
            let column = serde_json::to_string(&column.without_zero_bytes())?;
            elements.push_str(&secrets::strike(&column));
        }
        elements.push(',');
        elements.push_str(&serde_json::to_string(&body)?);
        Ok(Self { body, elements })
    }
}

/// What the holder of a token, or a judge of it, does to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseAction {
    Renew,
    Release,
    Expire,
    Revoke,
    Fence,
}

/// Says how the handling of a delivery ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Handled; its effects are in the same change set.
    Done,
    /// Failed, to be tried again; counts as an attempt.
    Retry {
        /// When to try again.
        due: DateTime<Utc>,
        /// What failed.
        error: String,
    },
    /// Put off, since what it needs is away; counts as no attempt.
    Postponed {
        /// When to try again.
        due: DateTime<Utc>,
        /// What it waits for.
        reason: String,
    },
    /// Failed for good; waits for a person in the dead letters.
    Dead {
        /// What failed.
        error: String,
    },
    /// Cannot be understood by this version; kept and shown.
    Parked {
        /// Why.
        reason: String,
    },
    /// Given up by a person; also closes a dead or parked delivery.
    Discarded {
        /// Who, and why.
        reason: String,
    },
    /// Opened again by a person, with a fresh count of attempts; only for a dead, parked or discarded delivery.
    Replay,
}

impl ChangeSet {
    /// Returns an empty change set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether nothing is to happen.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds a new row; conflicts when its key exists.
    pub fn insert<R: Record>(&mut self, record: &R) -> &mut Self {
        self.row::<R>(record.key(), Precondition::Absent, put(record))
    }

    /// Replaces a row that must still have the version it was read with.
    pub fn update<R: Record>(&mut self, before: &Versioned<R>, after: &R) -> &mut Self {
        self.row::<R>(
            after.key(),
            Precondition::Version(before.version),
            put(after),
        )
    }

    /// Writes a row whatever is there now.
    pub fn put<R: Record>(&mut self, record: &R) -> &mut Self {
        self.row::<R>(record.key(), Precondition::Anything, put(record))
    }

    /// Removes a row that must still have the version it was read with.
    pub fn delete<R: Record>(&mut self, before: &Versioned<R>) -> &mut Self {
        self.row::<R>(
            before.key(),
            Precondition::Version(before.version),
            Write::Delete,
        )
    }

    /// Demands that a row still has the version it was read with, without writing it.
    pub fn require<R: Record>(&mut self, before: &Versioned<R>) -> &mut Self {
        self.row::<R>(
            before.key(),
            Precondition::Version(before.version),
            Write::Nothing,
        )
    }

    /// Emits an event: stored, and given a delivery row for each subscriber routed at that moment.
    pub fn emit(&mut self, event: Event) -> &mut Self {
        self.add(Change::Emit(Box::new(event)))
    }

    /// Closes a delivery, or says when to try it again; fails with `Closed` when it is not open any more.
    pub fn close(&mut self, key: &DeliveryKey, outcome: Outcome) -> &mut Self {
        self.add(Change::Close(key.clone(), outcome))
    }

    /// Grants a lease with the new token of this change set; what `lease.token` says is ignored.
    pub fn grant(&mut self, lease: Lease) -> &mut Self {
        self.add(Change::Grant(Box::new(lease)))
    }

    /// Counts a renewal of a lease that must still be granted with `token`.
    pub fn renew(&mut self, path: &RepoPath, token: i64) -> &mut Self {
        self.lease(path, token, LeaseAction::Renew)
    }

    /// Gives back a lease that must still be granted with `token`.
    pub fn release(&mut self, path: &RepoPath, token: i64) -> &mut Self {
        self.lease(path, token, LeaseAction::Release)
    }

    /// Ends a lease that its holder did not renew; add [`ChangeSet::require`] to lose against a late renewal.
    pub fn expire(&mut self, path: &RepoPath, token: i64) -> &mut Self {
        self.lease(path, token, LeaseAction::Expire)
    }

    /// Takes a lease away from its holder.
    pub fn revoke(&mut self, path: &RepoPath, token: i64) -> &mut Self {
        self.lease(path, token, LeaseAction::Revoke)
    }

    /// Demands that a lease is still granted with `token`, without writing it.
    pub fn fence(&mut self, path: &RepoPath, token: i64) -> &mut Self {
        self.lease(path, token, LeaseAction::Fence)
    }

    /// Adds everything that `other` holds, after what is here.
    pub fn merge(&mut self, other: Self) -> &mut Self {
        self.changes.extend(other.changes);
        self
    }

    /// Returns the events to be emitted, in order.
    pub fn emitted(&self) -> impl Iterator<Item = &Event> {
        self.changes.iter().filter_map(|change| match change {
            Change::Emit(event) => Some(event.as_ref()),
            _ => None,
        })
    }

    /// Returns the records of one kind that are to be written, in order; for tests of what an agent decided.
    pub fn written<R: Record>(&self) -> Vec<R> {
        self.changes
            .iter()
            .filter_map(|change| match change {
                Change::Row(RowChange {
                    table,
                    write: Write::Put(row),
                    ..
                }) if *table == R::TABLE => serde_json::from_str(&row.body).ok(),
                _ => None,
            })
            .collect()
    }

    fn row<R: Record>(&mut self, key: String, expected: Precondition, write: Write) -> &mut Self {
        self.add(Change::Row(RowChange {
            table: R::TABLE,
            key,
            expected,
            write,
        }))
    }

    fn lease(&mut self, path: &RepoPath, token: i64, action: LeaseAction) -> &mut Self {
        self.add(Change::Lease(path.clone(), token, action))
    }

    fn add(&mut self, change: Change) -> &mut Self {
        self.changes.push(change);
        self
    }
}

fn put<R: Record>(record: &R) -> Write {
    match Row::of(record) {
        Ok(row) => Write::Put(Arc::new(row)),
        Err(error) => Write::Impossible(error.to_string()),
    }
}
