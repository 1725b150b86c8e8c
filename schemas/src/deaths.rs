//! Defines how often the program died of the same work (design §3, invariant 14).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often the program died with something in hand that has not got further since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deaths {
    /// What was in hand: `delivery/<sequence>/<subscriber>` or `task/<build>/<task>`; the key of the row.
    pub entity: String,
    /// How far it had come at most; who dies further on has made progress.
    pub step: u32,
    /// How many deaths in a row.
    pub count: u32,
    /// The last of them.
    pub last_at: DateTime<Utc>,
}
