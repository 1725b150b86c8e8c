//! Makes the events that locks, ownership and the detector of rings emit.

use chrono::{DateTime, Utc};
use ropewalk_runtime::Ids;
use ropewalk_schemas::{ComponentName, CorrelationId, Event, EventId, Payload, Priority, Subject};

/// Fills in what an event needs beside its subject and payload.
#[derive(Debug, Clone)]
pub struct Announcer {
    /// Makes event ids.
    pub ids: Ids,
    /// When it happens.
    pub now: DateTime<Utc>,
    /// The component that says so.
    pub source: ComponentName,
    /// The chain that it belongs to.
    pub correlation_id: CorrelationId,
    /// The event that caused it.
    pub causation_id: Option<EventId>,
    /// Its distance from the beginning of the chain.
    pub hop: u32,
    /// How urgent it is.
    pub priority: Priority,
}

impl Announcer {
    /// Returns an event about `subject`.
    pub fn event(&self, subject: Subject, payload: Payload) -> Event {
        Event {
            id: self.ids.next().into(),
            source: self.source.clone(),
            subject,
            time: self.now,
            correlation_id: self.correlation_id,
            causation_id: self.causation_id,
            hop: self.hop,
            traceparent: None,
            priority: self.priority,
            payload,
        }
    }
}
