//! Defines alerts (seed pipeline §7, design §5).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{BuildId, UserSlug};

/// Says how bad it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Somebody should look.
    Warning,
    /// Something does not work.
    Error,
    /// Work stands still.
    Critical,
}

impl Severity {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// That a person has seen an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledgement {
    /// The person.
    pub by: UserSlug,
    /// When.
    pub at: DateTime<Utc>,
}

/// An alert: one per cause, until the cause is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// Names the cause, for example `stuck/<build>/<task>/<attempt>`; the key of the row.
    pub cause: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line for people.
    pub message: String,
    /// The build it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// When it was raised.
    pub raised_at: DateTime<Utc>,
    /// How often it was raised again at a higher level.
    pub escalations: u32,
    /// Who has seen it, and when; until it grows worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
    /// When the cause was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared_at: Option<DateTime<Utc>>,
}
