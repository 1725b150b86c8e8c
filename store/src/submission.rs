//! Prepares a change set for the writer: judges what needs no database and encodes events, in the caller's task.

use std::sync::Arc;

use ropewalk_schemas::event::HOP_LIMIT;
use ropewalk_schemas::{CloudEvent, Event};

use crate::change_set::{Change, ChangeSet, RowChange, Write};
use crate::error::CommitError;

/// The most bytes that the data of an event may have.
const EVENT_LIMIT_BYTES: usize = 64 * 1024;

/// The most bytes that a record may have.
const RECORD_LIMIT_BYTES: usize = 1024 * 1024;

/// A change set on its way to the writer.
#[derive(Debug)]
pub(crate) struct Submission {
    /// The changes; the n-th emission among them is the n-th of `events`.
    pub(crate) changes: Vec<Change>,
    pub(crate) events: Vec<Arc<EncodedEvent>>,
    /// About how much will be written.
    pub(crate) size_bytes: usize,
}

/// An event in the form it is stored in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodedEvent {
    pub(crate) event: CloudEvent,
    pub(crate) body: String,
}

impl Submission {
    /// Checks sizes and hops, and encodes the events.
    pub(crate) fn prepare(changes: ChangeSet) -> Result<Self, CommitError> {
        let changes = changes.changes;
        let mut events = Vec::new();
        let mut size_bytes = 0;
        for change in &changes {
            match change {
                Change::Row(row) => size_bytes += check_row(row)?,
                Change::Emit(event) => {
                    let encoded = encode(event)?;
                    size_bytes += encoded.body.len();
                    events.push(Arc::new(encoded));
                }
                Change::Close(..) | Change::Grant(_) | Change::Lease(..) => size_bytes += 512,
            }
        }
        Ok(Self {
            changes,
            events,
            size_bytes,
        })
    }
}

fn check_row(row: &RowChange) -> Result<usize, CommitError> {
    match &row.write {
        Write::Nothing | Write::Delete => Ok(row.key.len()),
        Write::Put(written) if written.body.len() > RECORD_LIMIT_BYTES => {
            Err(CommitError::Oversized {
                what: format!("row `{}` of `{}`", row.key, row.table.name),
                size_bytes: written.body.len(),
                limit_bytes: RECORD_LIMIT_BYTES,
            })
        }
        Write::Put(written) => Ok(written.body.len()),
        Write::Impossible(reason) => Err(unwritable(row.table.name, &row.key, reason.clone())),
    }
}

fn encode(event: &Event) -> Result<EncodedEvent, CommitError> {
    if event.hop > HOP_LIMIT {
        return Err(CommitError::HopLimit {
            event_type: event.event_type().to_owned(),
            hop: event.hop,
        });
    }
    let event = event.to_cloud_event();
    let body = serde_json::to_string(&event)
        .map_err(|error| unwritable("events", &event.id.to_string(), error.to_string()))?;
    // The data is part of the body: only a large body needs a second look.
    if body.len() > EVENT_LIMIT_BYTES {
        let size_bytes = event.data.to_string().len();
        if size_bytes > EVENT_LIMIT_BYTES {
            return Err(CommitError::Oversized {
                what: format!("event `{}`", event.event_type),
                size_bytes,
                limit_bytes: EVENT_LIMIT_BYTES,
            });
        }
    }
    Ok(EncodedEvent { event, body })
}

fn unwritable(table: &'static str, key: &str, reason: String) -> CommitError {
    CommitError::Unwritable {
        table,
        key: key.to_owned(),
        reason,
    }
}
