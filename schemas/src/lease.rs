//! Defines file locks and ownership (design §9).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::Predecessor;
use crate::ids::{AttemptId, BuildId, ComponentName, TaskId};
use crate::repo_path::RepoPath;
use crate::state::states;

states! {
    /// Says whether a lease still holds.
    LeaseState ("lease") {
        /// It holds.
        Granted = "granted" => [Released, Expired, Revoked],
        /// The holder gave it back.
        Released = "released" => [Granted],
        /// The holder did not renew it.
        Expired = "expired" => [Granted],
        /// It was taken away.
        Revoked = "revoked" => [Granted],
    }
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// The build.
    pub build: BuildId,
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The loop.
    pub loop_name: ComponentName,
}

/// A lock on one file. The row outlives the lock, so that tokens of one file only grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// The file.
    pub path: RepoPath,
    /// Who holds it, or held it last.
    pub holder: Holder,
    /// Whether it holds.
    pub state: LeaseState,
    /// The fencing token, from one counter of the store.
    pub token: i64,
    /// How often it was renewed; a judge expires it when this stands still for a whole time to live.
    pub renewals: u64,
    /// The time to live, milliseconds.
    pub ttl_ms: u64,
    /// What it is for.
    pub reason: String,
    /// When it was granted.
    pub granted_at: DateTime<Utc>,
}

/// Says which build owns a file, until it is merged or abandoned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ownership {
    /// The file.
    pub path: RepoPath,
    /// The owner.
    pub build: BuildId,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Whether it ended with the merge of the build; the row stays until the file has a new owner.
    #[serde(default)]
    pub ended: bool,
    /// Whose result the owner has to build on when it changes the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Predecessor>,
}
