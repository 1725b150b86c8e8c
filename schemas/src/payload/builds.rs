//! Payloads of builds, locks and ownership.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::{BuildState, PauseReason, TaskCounts};
use crate::event::Priority;
use crate::ids::{AttemptId, BuildId, CommitId, ComponentName, Slug, SpecId, TaskId};
use crate::model_call::Spending;
use crate::repo_path::RepoPath;
use crate::specification::Price;

/// A build began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildStarted {
    /// The build.
    pub build_id: BuildId,
    /// What it builds.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// The number of tasks.
    pub task_count: u32,
    /// The branch it lands on.
    pub branch: String,
}

/// A build stands still.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildPaused {
    /// The build.
    pub build_id: BuildId,
    /// The idea.
    pub idea_slug: Slug,
    /// Why.
    pub reason: PauseReason,
    /// One line for people.
    pub detail: String,
    /// The tasks by outcome.
    #[serde(default)]
    pub counts: TaskCounts,
}

/// Somebody said something to the model of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildTell {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// Who said it.
    pub said_by: String,
    /// What was said.
    pub text: String,
}

/// A build's branch was merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildMerged {
    /// The build.
    pub build_id: BuildId,
    /// The idea.
    pub idea_slug: Slug,
    /// The branch merged into.
    pub into: String,
    /// The resulting head.
    pub commit_id: CommitId,
    /// Who did it.
    pub merged_by: String,
}

/// A build ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildCompleted {
    /// The build.
    pub build_id: BuildId,
    /// What it built.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// How it ended.
    pub status: BuildState,
    /// Why it ended so, unless it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tasks by outcome.
    pub counts: TaskCounts,
    /// Working time, without waits and pauses.
    pub duration_seconds: u64,
    /// What it was expected to cost when it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Price>,
    /// What it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spending>,
    /// The branch.
    pub branch: String,
    /// One commit per landed task, in landing order.
    #[serde(default)]
    pub commits: Vec<CommitId>,
}

/// Somebody asked a build to pause, go on or stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildRequest {
    /// The build.
    pub build_id: BuildId,
    /// Who asked.
    pub requested_by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Somebody said how urgent a build is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildPriority {
    /// The build.
    pub build_id: BuildId,
    /// How urgent it is from now on.
    pub priority: Priority,
    /// Who asked.
    pub requested_by: String,
}

/// A task was given to a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkAssigned {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The loop that had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ComponentName>,
    /// The loop that should take it next.
    pub to: ComponentName,
    /// Why; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A running attempt got files that its task does not declare, because its model asked for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockExtended {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The files.
    pub files: Vec<RepoPath>,
    /// Why, as the model said it; bounded.
    pub reason: String,
}

/// A file lock was released.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockReleased {
    /// The build that held it.
    pub build_id: BuildId,
    /// The task that held it.
    pub task_id: TaskId,
    /// The attempt that held it.
    pub attempt_id: AttemptId,
    /// The files.
    #[serde(default)]
    pub files: Vec<RepoPath>,
}

/// A file lock was taken away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockRevoked {
    /// The build that held it.
    pub build_id: BuildId,
    /// The task that held it.
    pub task_id: TaskId,
    /// The attempt that held it.
    pub attempt_id: AttemptId,
    /// The files.
    #[serde(default)]
    pub files: Vec<RepoPath>,
    /// Why.
    pub reason: String,
}

/// A build asks the owner of a file for a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeRequested {
    /// The build that asks.
    pub build_id: BuildId,
    /// The task that needs it.
    pub task_id: TaskId,
    /// The build that owns the file.
    pub owner: BuildId,
    /// The file.
    pub file: RepoPath,
    /// What should change.
    pub change: String,
}

/// The owner answered a change request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeDecided {
    /// The build that asked.
    pub build_id: BuildId,
    /// The task that needs it.
    pub task_id: TaskId,
    /// The build that owns the file.
    pub owner: BuildId,
    /// The file.
    pub file: RepoPath,
    /// Whether the change may be made.
    pub approved: bool,
    /// Why.
    pub reason: String,
}
