//! Dead letters as people see them.

use chrono::{DateTime, Utc};
use ropewalk_bus::DeadLetters;
use ropewalk_schemas::{CloudEvent, EventId, Subject};
use ropewalk_store::{DeliveryRow, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::dead_letters::DeadLetterName;

/// A dead letter in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeadLetterRow {
    /// Names it, for example `12/build`.
    pub id: String,
    /// The type of its event.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Its event.
    pub event: EventId,
    /// The entity that it is about.
    pub subject: Subject,
    /// Whether it was given up, or could not be understood.
    pub state: &'static str,
    /// How often it was tried.
    pub attempts: u32,
    /// What failed last.
    pub error: Option<String>,
    /// When it was given up.
    pub closed_at: Option<DateTime<Utc>>,
}

/// A dead letter with its event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeadLetterView {
    /// The dead letter.
    #[serde(flatten)]
    pub letter: DeadLetterRow,
    /// Its event.
    pub content: CloudEvent,
}

impl From<DeliveryRow> for DeadLetterRow {
    fn from(row: DeliveryRow) -> Self {
        Self {
            id: row.key.to_string(),
            event_type: row.event_type,
            event: row.event_id,
            subject: row.subject,
            state: row.state.as_str(),
            attempts: row.attempts,
            error: row.error,
            closed_at: row.closed_at,
        }
    }
}

/// Lists what could not be handled, the newest first, at most `limit` of it.
pub async fn list(store: &Store, limit: u32) -> Result<Vec<DeadLetterRow>, ReadError> {
    let rows = DeadLetters::new(store.clone()).list(limit).await?;
    Ok(rows.into_iter().map(DeadLetterRow::from).collect())
}

/// Lists what happened to one entity and could not be handled, the newest first.
pub async fn about(store: &Store, subject: Subject) -> Result<Vec<DeadLetterRow>, ReadError> {
    let rows = DeadLetters::new(store.clone()).about(subject).await?;
    Ok(rows.into_iter().map(DeadLetterRow::from).collect())
}

/// Loads a dead letter with its event; `None` when none is called so.
pub async fn show(
    store: &Store,
    name: &DeadLetterName,
) -> Result<Option<DeadLetterView>, ReadError> {
    let found = DeadLetters::new(store.clone()).show(&name.0).await?;
    Ok(found.map(|found| DeadLetterView {
        letter: found.delivery.into(),
        content: found.event,
    }))
}
