//! Defines the journal of model calls, which is also the usage record (design §3 invariant 4, §13).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{BuildId, Slug, TaskId};

/// One answered call. It is stored before it is acted on, so that a crash does not ask twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCall {
    /// Names the call: the work it belongs to and its turn; the key of the row.
    pub key: String,
    /// The model role, for example `build`.
    pub role: String,
    /// The model that answered.
    pub model: String,
    /// The idea it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<Slug>,
    /// The build it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// The task it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The reply as the `llm` crate defines it.
    pub reply: Value,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Millionths of a dollar; none when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// When.
    pub at: DateTime<Utc>,
}
