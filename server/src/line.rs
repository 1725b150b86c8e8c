//! Shows an event with its position, in lists and in streams.

use ropewalk_schemas::CloudEvent;
use ropewalk_store::StoredEvent;
use schemars::JsonSchema;
use serde::Serialize;

/// An event with its position.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TimelineEvent")]
pub(crate) struct Line {
    /// Its position in commit order.
    pub(crate) sequence: i64,
    /// The event.
    #[serde(flatten)]
    pub(crate) event: CloudEvent,
}

impl From<&StoredEvent> for Line {
    fn from(stored: &StoredEvent) -> Self {
        Self {
            sequence: stored.sequence,
            event: CloudEvent::clone(&stored.event),
        }
    }
}
