//! Defines stored events, subscriptions, and what a commit answers.

pub(crate) mod traced;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{CloudEvent, ComponentName, CorrelationId, EventPattern, Subject};

/// An event with its position and the subscribers it was routed to.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its position in commit order.
    pub sequence: i64,
    /// The event; what it means is for the reader to decode.
    pub event: Arc<CloudEvent>,
    /// The subscribers that were given a delivery row.
    pub subscribers: Vec<ComponentName>,
}

/// What a commit did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommitOutcome {
    /// The events emitted, in order.
    pub events: Vec<StoredEvent>,
    /// The token that all leases granted by this change set share.
    pub token: Option<i64>,
}

/// Selects events; an empty filter selects all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventFilter {
    /// Only those after this sequence.
    pub after_sequence: Option<i64>,
    /// Only those before this sequence.
    pub before_sequence: Option<i64>,
    /// Only those at or after this time.
    pub from: Option<DateTime<Utc>>,
    /// Only those before this time.
    pub until: Option<DateTime<Utc>>,
    /// Only those of this source.
    pub source: Option<ComponentName>,
    /// Only those that a pattern selects.
    pub pattern: Option<EventPattern>,
    /// Only those of one chain.
    pub correlation: Option<CorrelationId>,
    /// Only those about one entity.
    pub subject: Option<Subject>,
    /// At most so many.
    pub limit: Option<u32>,
    /// The newest first.
    pub newest_first: bool,
}

/// The ids by a part of which people name what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKey {
    /// The id of an event.
    Id,
    /// The id of a chain of events.
    Correlation,
}

/// Says where a new subscriber begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With what is committed from now on.
    Now,
    /// With the first event ever stored.
    Beginning,
    /// With the event of this sequence.
    Sequence(i64),
}

/// Asks for delivery rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The subscriber.
    pub name: ComponentName,
    /// What it takes: an event that any of these selects.
    pub patterns: Vec<EventPattern>,
    /// Where it begins when it is new; ignored when it is known.
    pub from: StartAt,
}

impl Subscription {
    /// Returns a subscription to these types and families from any source, from now on.
    pub fn new<'a>(name: ComponentName, types: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            name,
            patterns: types.into_iter().map(EventPattern::of).collect(),
            from: StartAt::Now,
        }
    }

    /// Returns whether an event is selected.
    pub fn takes(&self, event_type: &str, source: &ComponentName) -> bool {
        self.patterns
            .iter()
            .any(|pattern| pattern.matches(event_type, source))
    }
}
