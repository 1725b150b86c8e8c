//! Defines wishes: what a person wants done about the branch of a build, until it is done.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{BuildId, EventId};

/// What a person wants of the branch of a build: one row each, which is gone when it is done or cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wish {
    /// The build; the key of the row.
    pub build: BuildId,
    /// What is wanted.
    pub what: BranchWish,
    /// Who wants it.
    pub by: String,
    /// The event that said so; what is done about it is caused by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EventId>,
    /// When it was said.
    pub at: DateTime<Utc>,
}

/// Says what is wanted of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchWish {
    /// What somebody else put on it becomes the head.
    BuildOnTop,
    /// What landed goes on under a free name.
    OwnBranch,
    /// It is brought into the branch that the build began from.
    Merge,
    /// A task of the build resolves what stands against that.
    Resolve,
}
