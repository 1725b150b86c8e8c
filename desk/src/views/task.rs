//! A task of a build as people see it: every attempt at it, and what the gate saw of each.

use ropewalk_schemas::attempt::{Attempt, Evidence};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{Query, ReadError, Store, task_key};
use schemars::JsonSchema;
use serde::Serialize;

use super::{question, records};

/// A task with its attempts and their evidence.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskView {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The attempts at it, the first one first.
    pub made: Vec<Attempt>,
    /// What the gate saw, the earliest first.
    pub evidence: Vec<Evidence>,
}

/// Loads a task of a build with what belongs to it; none where the build has no such task. A question about it that is open
/// no more is none.
pub async fn show(
    store: &Store,
    build: BuildId,
    name: &TaskId,
) -> Result<Option<TaskView>, ReadError> {
    let Some(found) = store.get::<Task>(&task_key(build, name)).await? else {
        return Ok(None);
    };
    let mut task = found.into_inner();
    question::forget_closed(store, vec![&mut task.question]).await?;
    let of_task = || {
        Query::new()
            .equal("build", task.build.to_string())
            .equal("task", task.id.as_str())
    };
    let mut made: Vec<Attempt> = records(store.list(of_task().order_by("number")).await?);
    made.sort_by_key(|attempt| (attempt.number, attempt.round, attempt.started_at));
    let evidence = records(store.list(of_task().order_by("at")).await?);
    Ok(Some(TaskView {
        task,
        made,
        evidence,
    }))
}
