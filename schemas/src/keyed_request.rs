//! Defines requests that were made under a key, so that they are done once.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ContentHash;

/// What was asked under a key, and how that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyedRequest {
    /// Who asked, and the hash of their key; the key of the row.
    pub key: String,
    /// The hash of what was asked.
    pub hash: ContentHash,
    /// How it was answered; none while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<KeyedAnswer>,
    /// When it was asked.
    pub at: DateTime<Utc>,
}

/// An answer that is given again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyedAnswer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: String,
}
