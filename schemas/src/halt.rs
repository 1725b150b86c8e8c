//! Defines the halt: that people have stopped everything, until they lift it.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clip;
use crate::ids::UserSlug;

/// That somebody stopped everything: one row for a project. While it stands no model is asked and no command begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Halt {
    /// What is stopped; the key of the row.
    pub scope: String,
    /// Who stopped everything.
    pub by: UserSlug,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Who let it go on; nobody while it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_by: Option<UserSlug>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_at: Option<DateTime<Utc>>,
}

impl Halt {
    /// The scope of a halt of everything, which is the only one.
    pub const EVERYTHING: &str = "everything";

    /// So much of the reason is repeated wherever it is told that this stands.
    const TOLD_LETTERS: usize = 200;

    /// Returns whether nothing may begin.
    pub const fn stands(&self) -> bool {
        self.lifted_at.is_none()
    }

    /// Returns why, as one line that can be repeated everywhere; empty where nobody said so.
    pub fn why(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or_default();
        clip::line(reason, Self::TOLD_LETTERS)
    }

    /// Says what it is, for people.
    pub fn in_words(&self) -> String {
        let since = self.since.format("%Y-%m-%d %H:%M:%S UTC");
        let why = self.why();
        let colon = if why.is_empty() { "" } else { ": " };
        format!("{} stopped everything at {since}{colon}{why}", self.by)
    }
}
