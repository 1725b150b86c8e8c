//! Payloads of tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attempt::FailureClass;
use crate::build::TaskCounts;
use crate::ids::{BuildId, CommitId, ComponentName, Slug, TaskId};
use crate::repo_path::RepoPath;

/// An attempt began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The idea.
    pub idea_slug: Slug,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The primary file.
    pub file: RepoPath,
    /// The loop that works on it.
    pub loop_name: ComponentName,
}

/// A task landed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCompleted {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The idea.
    pub idea_slug: Slug,
    /// How many attempts it took.
    pub attempts: u32,
    /// Working time of the attempt that landed.
    pub duration_seconds: u64,
    /// The commit; none for a task that only verifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<CommitId>,
    /// The tasks that waited for this one last and are free now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unblocked: Vec<TaskId>,
    /// The tasks of the build by outcome, this one landed; events from before this was told count none.
    #[serde(default)]
    pub counts: TaskCounts,
}

/// A task was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSkipped {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The idea.
    pub idea_slug: Slug,
    /// Who decided.
    pub skipped_by: String,
    /// Why.
    pub reason: String,
}

/// An attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFailed {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The idea.
    pub idea_slug: Slug,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The class of the failure.
    pub category: FailureClass,
    /// What went wrong, bounded.
    pub error: String,
    /// Whether another attempt follows by itself.
    pub will_retry: bool,
    /// How many tasks cannot go on without this one, once no attempt follows by itself.
    #[serde(default)]
    pub blocked: u32,
    /// How many tasks go on without it.
    #[serde(default)]
    pub continuing: u32,
    /// What a person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended: Option<String>,
}

/// Somebody asked for another round of attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRetry {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// Who asked.
    pub requested_by: String,
    /// What to do differently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// Whether who asked may let a build go on that a person stopped. An answer to a question never does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_resume: bool,
}
