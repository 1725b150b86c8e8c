//! Defines who works on a project, and what each of them may do.

use std::collections::BTreeSet;

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::person::{Right, Role};
use serde::{Deserialize, Serialize};

/// A person of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonRecord {
    /// The user of the operating system that is this person on a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The hash of the token by which this person is known elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_sha256: Option<ContentHash>,
    /// The user of Telegram that is this person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telegram_user: Option<i64>,
    /// The chats in which that user is listened to; the first is where this person is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telegram_chats: Vec<i64>,
    /// What this person is asked about.
    #[serde(default)]
    pub roles: BTreeSet<Role>,
    /// What this person may do beside what everybody may.
    #[serde(default)]
    pub rights: BTreeSet<Right>,
    /// Whether this person hears the daily summary; who says nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<bool>,
}
