//! Prepares a change set for the writer: judges what needs no database and encodes events, in the caller's task.

use std::sync::Arc;

use ropewalk_runtime::secrets;
use ropewalk_schemas::event::{HOP_LIMIT, INTAKE_TYPES};
use ropewalk_schemas::{CloudEvent, ContentHash, Event};

use crate::change_set::{Change, ChangeSet, RowChange, Write};
use crate::error::CommitError;

/// The most bytes that the data of an event may have to be stored with it.
const INLINE_LIMIT_BYTES: usize = 64 * 1024;

/// The most bytes that the data of an event may have.
const EVENT_LIMIT_BYTES: usize = 1024 * 1024;

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
    pub(crate) event: Arc<CloudEvent>,
    /// What follows the sequence in its row, as elements of a JSON array without its brackets.
    pub(crate) elements: String,
    /// Its data, where that lies apart from the row.
    pub(crate) blob: Option<Blob>,
}

/// The data of a large event, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blob {
    pub(crate) hash: ContentHash,
    pub(crate) text: String,
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
                    size_bytes += encoded.elements.len();
                    size_bytes += encoded.blob.as_ref().map_or(0, |blob| blob.text.len());
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

    /// Returns whether it brings in something new instead of going on with what is there.
    pub(crate) fn is_intake(&self) -> bool {
        let begins = |event: &EncodedEvent| {
            event.event.hop == 0 && INTAKE_TYPES.contains(&event.event.event_type.as_str())
        };
        let handles = |change: &Change| matches!(change, Change::Close(..));
        self.events.iter().any(|event| begins(event)) && !self.changes.iter().any(handles)
    }

    /// Returns the data that lies apart from its event.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Blob> {
        self.events.iter().filter_map(|event| event.blob.as_ref())
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
    let mut event = event.to_cloud_event();
    secrets::strike_json(&mut event.data);
    let id = event.id;
    let refused =
        |error: serde_json::Error| unwritable("events", &id.to_string(), error.to_string());
    let mut body = serde_json::to_string(&event).map_err(refused)?;
    // The data is part of the body: only a large body needs a second look.
    let blob = if body.len() > INLINE_LIMIT_BYTES {
        large_data(&event)?
    } else {
        None
    };
    if let Some(blob) = &blob {
        event.dataref = Some(blob.hash.clone());
        let apart = CloudEvent {
            data: serde_json::Value::Null,
            ..event.clone()
        };
        body = serde_json::to_string(&apart).map_err(refused)?;
    }
    let elements = elements(&event, &body).map_err(refused)?;
    Ok(EncodedEvent {
        event: Arc::new(event),
        elements,
        blob,
    })
}

/// Returns the data of an event that is too large to be stored with it.
fn large_data(event: &CloudEvent) -> Result<Option<Blob>, CommitError> {
    let text = event.data.to_string();
    if text.len() <= INLINE_LIMIT_BYTES {
        return Ok(None);
    }
    if text.len() > EVENT_LIMIT_BYTES {
        return Err(CommitError::Oversized {
            what: format!("event `{}`", event.event_type),
            size_bytes: text.len(),
            limit_bytes: EVENT_LIMIT_BYTES,
        });
    }
    let hash = ContentHash::of(text.as_bytes());
    Ok(Some(Blob { hash, text }))
}

fn elements(event: &CloudEvent, body: &str) -> serde_json::Result<String> {
    let array = serde_json::to_string(&(
        event.id,
        &event.event_type,
        &event.source,
        &event.subject,
        event.correlationid,
        event.priority,
        event.time.timestamp_millis(),
        body,
    ))?;
    let inner = array
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    Ok(inner.unwrap_or_default().to_owned())
}

fn unwritable(table: &'static str, key: &str, reason: String) -> CommitError {
    CommitError::Unwritable {
        table,
        key: key.to_owned(),
        reason,
    }
}
