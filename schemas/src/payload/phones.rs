//! Payloads of phones.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::UserSlug;

/// Somebody was linked to a phone by a code, and is reached there from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhoneLinked {
    /// Who.
    pub person: UserSlug,
}

/// A bot keeps what somebody did in a chat until it has its turn: it brings a file, which is fetched while others go on, or
/// stands behind one of the same person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateKept {
    /// The bot: each counts its updates by itself.
    pub bot: i64,
    /// Its number.
    pub update_id: i64,
    /// What somebody did, as the bot reads it.
    pub update: Value,
}

/// A bot could not do what somebody did in a chat: it is handed over, to be tried again and kept until somebody decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateLeft {
    /// The bot: each counts its updates by itself.
    pub bot: i64,
    /// Its number.
    pub update_id: i64,
    /// What somebody did, as the bot reads it.
    pub update: Value,
    /// When it was first begun: what it came to since then need not be done again; events from before this was told have
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<DateTime<Utc>>,
    /// Why it could not be done.
    pub reason: String,
}
