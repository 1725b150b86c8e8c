//! Events as people see them: with their position, and with what became of them.

use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{CloudEvent, ComponentName, EventId};
use ropewalk_store::{DeliveryFilter, DeliveryRow, EventFilter, ReadError, Store, StoredEvent};
use schemars::JsonSchema;
use serde::Serialize;

/// An event with its position.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TimelineEvent {
    /// Its position in commit order.
    pub sequence: i64,
    /// The event.
    #[serde(flatten)]
    pub event: CloudEvent,
}

impl From<&StoredEvent> for TimelineEvent {
    fn from(stored: &StoredEvent) -> Self {
        Self {
            sequence: stored.sequence,
            event: CloudEvent::clone(&stored.event),
        }
    }
}

/// An event with what became of it at each subscriber.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventView {
    /// Its position in commit order.
    pub sequence: i64,
    /// The event.
    #[serde(flatten)]
    pub event: CloudEvent,
    /// Who takes it, and how far they are.
    pub deliveries: Vec<DeliveryView>,
}

/// What became of an event at one subscriber.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveryView {
    /// The subscriber.
    pub subscriber: ComponentName,
    /// Where it stands.
    pub state: &'static str,
    /// How often it was tried.
    pub attempts: u32,
    /// What failed last.
    pub error: Option<String>,
    /// When it was closed.
    pub closed_at: Option<DateTime<Utc>>,
}

impl From<DeliveryRow> for DeliveryView {
    fn from(row: DeliveryRow) -> Self {
        Self {
            subscriber: row.key.subscriber,
            state: row.state.as_str(),
            attempts: row.attempts,
            error: row.error,
            closed_at: row.closed_at,
        }
    }
}

/// Names an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventName {
    /// By its id.
    Id(EventId),
    /// By its position in commit order.
    Position(i64),
}

/// Says that a text names no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a position or a whole id, as `ropewalk event list` shows them")]
pub struct NoEventName;

impl FromStr for EventName {
    type Err = NoEventName;

    fn from_str(text: &str) -> Result<Self, NoEventName> {
        match (text.parse(), text.parse()) {
            (Ok(position), _) => Ok(Self::Position(position)),
            (_, Ok(id)) => Ok(Self::Id(id)),
            _ => Err(NoEventName),
        }
    }
}

/// Lists what `filter` selects, in its order.
pub async fn list(store: &Store, filter: &EventFilter) -> Result<Vec<TimelineEvent>, ReadError> {
    let events = store.events(filter).await?;
    Ok(events.iter().map(TimelineEvent::from).collect())
}

/// Loads an event with what became of it; `None` when nothing is called so.
pub async fn show(store: &Store, name: EventName) -> Result<Option<EventView>, ReadError> {
    let Some(stored) = find(store, name).await? else {
        return Ok(None);
    };
    let filter = DeliveryFilter {
        event: Some(stored.event.id),
        ..DeliveryFilter::default()
    };
    let deliveries = store.deliveries(&filter).await?;
    Ok(Some(EventView {
        sequence: stored.sequence,
        event: Arc::unwrap_or_clone(stored.event),
        deliveries: deliveries.into_iter().map(DeliveryView::from).collect(),
    }))
}

async fn find(store: &Store, name: EventName) -> Result<Option<StoredEvent>, ReadError> {
    match name {
        EventName::Id(id) => store.event(id).await,
        EventName::Position(position) => {
            let filter = EventFilter {
                after_sequence: Some(position.saturating_sub(1)),
                before_sequence: Some(position.saturating_add(1)),
                limit: Some(1),
                ..EventFilter::default()
            };
            Ok(store.events(&filter).await?.pop())
        }
    }
}
