//! Defines delivery rows as callers see them: outbox, inbox, attempt counter and dead letter in one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{CloudEvent, ComponentName, EventId, Subject};

/// Names a delivery: one event to one subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey {
    /// The event's position in commit order.
    pub sequence: i64,
    /// The subscriber.
    pub subscriber: ComponentName,
}

impl std::fmt::Display for DeliveryKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.sequence, self.subscriber)
    }
}

/// Says where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeliveryState {
    /// To be handled.
    Open,
    /// Handled.
    Done,
    /// Not understood by this version; kept and shown.
    Parked,
    /// Failed for good.
    Dead,
    /// Given up by a person.
    Discarded,
    /// Its subscriber is gone.
    Unsubscribed,
}

impl DeliveryState {
    /// Lists every state.
    pub const ALL: &'static [Self] = &[
        Self::Open,
        Self::Done,
        Self::Parked,
        Self::Dead,
        Self::Discarded,
        Self::Unsubscribed,
    ];

    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Parked => "parked",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
            Self::Unsubscribed => "unsubscribed",
        }
    }

    /// Returns the state written as `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|state| state.as_str() == text)
    }
}

impl std::fmt::Display for DeliveryState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A delivery that is to be handled.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenDelivery {
    /// Names it.
    pub key: DeliveryKey,
    /// The event; what it means is for the reader to decode.
    pub event: CloudEvent,
    /// How often it was tried.
    pub attempts: u32,
    /// Not to be tried earlier.
    pub due: DateTime<Utc>,
    /// What failed last.
    pub last_error: Option<String>,
}

/// How an open delivery stands among the processes that could handle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryPosition {
    /// The event's position in commit order.
    pub sequence: i64,
    /// How often it was tried.
    pub attempts: u32,
    /// Not to be tried earlier.
    pub due: DateTime<Utc>,
    /// Whether an earlier one of the same entity is open.
    pub behind: bool,
    /// For how long another process has it, unless that makes it longer.
    pub held: Option<Duration>,
}

/// A delivery in any state, for dead letters and views.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRow {
    /// Names it.
    pub key: DeliveryKey,
    /// The event.
    pub event_id: EventId,
    /// Its type.
    pub event_type: String,
    /// The entity it is about.
    pub subject: Subject,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// Not to be tried earlier.
    pub due: DateTime<Utc>,
    /// What failed last, or why it is parked.
    pub error: Option<String>,
    /// When it was closed.
    pub closed_at: Option<DateTime<Utc>>,
}

/// Selects deliveries; an empty filter selects all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliveryFilter {
    /// Only those to this subscriber.
    pub subscriber: Option<ComponentName>,
    /// Only those in one of these states; empty takes every state.
    pub states: Vec<DeliveryState>,
    /// Only those of this event.
    pub event: Option<EventId>,
    /// Only those of this entity.
    pub subject: Option<Subject>,
    /// Only those after this sequence.
    pub after_sequence: Option<i64>,
    /// At most so many.
    pub limit: Option<u32>,
    /// The newest first.
    pub newest_first: bool,
}
