//! Defines durable timers and schedules (design §5 `schedule.due`).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{CorrelationId, TimerId};

/// Something that comes due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timer {
    /// Names it.
    pub id: TimerId,
    /// What comes due, for example `question.default`.
    pub name: String,
    /// The entity it concerns; empty for a schedule.
    pub target: String,
    /// When.
    pub due: DateTime<Utc>,
    /// The schedule, if it comes again: 5 or 6 fields, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The chain of events it belongs to.
    pub correlation_id: CorrelationId,
}
