//! What people want of the tasks of a build: another try, and that they hear something.

use std::collections::BTreeSet;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::illegal::{self, IllegalRequest};
use ropewalk_schemas::payload::{BuildTell, TaskRetry};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, Payload, Priority, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Store, Versioned, task_key};

use crate::length::{self, LengthError, SAID_BYTES};
use crate::people::{PermissionError, Person};
use crate::views::build::holder::{self, HolderView};

/// Says why nothing became of a wish about tasks.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// The build has no such task.
    #[error("no task is called `{task}`")]
    Unknown {
        /// The build.
        build: BuildId,
        /// What was named.
        task: String,
    },
    /// The task or its build has no use for it.
    #[error("{}", .0.what())]
    State(IllegalRequest),
    /// Nobody would hear it.
    #[error("no task of build {0} is open")]
    NoneOpen(BuildId),
    /// Nothing was said, or too much.
    #[error("say something of at most {SAID_BYTES} bytes, after the build and perhaps a task")]
    Words,
    /// The advice for the next try is too long.
    #[error(transparent)]
    TooLong(#[from] LengthError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// No source of it: it says all of that itself, and how it is mended apart.
impl From<IllegalRequest> for TaskError {
    fn from(refused: IllegalRequest) -> Self {
        Self::State(refused)
    }
}

/// Lists the tasks of a build in the order of its plan.
pub async fn of_build(store: &Store, build: BuildId) -> Result<Vec<Versioned<Task>>, ReadError> {
    let of_build = Query::new()
        .equal("build", build.to_string())
        .order_by("number");
    store.list::<Task>(of_build).await
}

/// Returns whether another round of tries of a task of a build can be asked for, by `person`.
pub fn can_retry(build: &Build, task: &Task, person: &Person) -> bool {
    illegal::retry(task).is_ok()
        && illegal::run_again(build, "be resumed").is_ok()
        && may_retry(build, person).is_ok()
}

/// Refuses who may not ask for another round of tries of a task of a build: of one that a person stopped, who may not let it go on.
fn may_retry(build: &Build, person: &Person) -> Result<(), PermissionError> {
    if build.state == BuildState::Stopped && build.stop == Some(StopCause::Person) {
        return person.demand(Right::Stop);
    }
    Ok(())
}

/// Asks for another round of tries of a task; a build that has ended without it runs again, and one that a person stopped for
/// nobody but who may let it go on. Answers whether an attempt at it runs, which ends then.
pub async fn retry(
    context: &Context,
    build: &Build,
    task: &TaskId,
    person: &Person,
    guidance: Option<String>,
) -> Result<bool, TaskError> {
    length::said("the guidance", guidance.as_deref())?;
    let row = context.store.get::<Task>(&task_key(build.id, task)).await?;
    let row = row.ok_or_else(|| unknown(build, task.as_str()))?;
    if let Err(refused) = illegal::retry(&row) {
        return Err(explained(&context.store, build, &row, refused)
            .await?
            .into());
    }
    illegal::run_again(build, "be resumed")?;
    may_retry(build, person)?;
    // A stop may be on its way that is not done yet, so that this goes with the wish in whatever state the build is.
    let may_resume = person.demand(Right::Stop).is_ok();
    let context = context.for_claim(build.correlation_id, Priority::URGENT);
    let mut changes = ChangeSet::new();
    changes.emit(context.event(
        Subject::task(build.id, task),
        Payload::TaskRetry(TaskRetry {
            build_id: build.id,
            task_id: task.clone(),
            requested_by: person.name.to_string(),
            guidance,
            may_resume,
        }),
    ));
    context.store.commit(changes).await?;
    Ok(row.state.is_active())
}

/// Says something to the models that work on a build, or on one task of it; each hears it with its next turn. Answers
/// which tasks hear it.
pub async fn tell(
    context: &Context,
    build: &Build,
    named: Option<&str>,
    person: &Person,
    text: &str,
) -> Result<Vec<TaskId>, TaskError> {
    if text.trim().is_empty() || text.len() > SAID_BYTES {
        return Err(TaskError::Words);
    }
    let hears = |task: &Task| match named {
        Some(named) => task.id.as_str() == named,
        None => !matches!(task.state, TaskState::Complete | TaskState::Skipped),
    };
    let mut hearing = of_build(&context.store, build.id).await?;
    hearing.extend(still_worked_on(&context.store, build).await?);
    hearing.retain(|task| hears(task));
    if hearing.is_empty() {
        return Err(named.map_or(TaskError::NoneOpen(build.id), |task| unknown(build, task)));
    }
    let context = context.for_claim(build.correlation_id, Priority::URGENT);
    let mut changes = ChangeSet::new();
    for task in &hearing {
        illegal::tell(task)?;
        changes.emit(context.event(
            Subject::task(task.build, &task.id),
            Payload::BuildTell(BuildTell {
                build_id: task.build,
                task_id: task.id.clone(),
                said_by: person.name.to_string(),
                text: text.to_owned(),
            }),
        ));
    }
    context.store.commit(changes).await?;
    let mut told: Vec<TaskId> = hearing.into_iter().map(|task| task.record.id).collect();
    let mut seen = BTreeSet::new();
    told.retain(|task| seen.insert(task.clone()));
    Ok(told)
}

/// Lists the tasks that a build which gave way to `build` still works on: what they land is kept here.
async fn still_worked_on(store: &Store, build: &Build) -> Result<Vec<Versioned<Task>>, ReadError> {
    let mut found = Vec::new();
    let mut before = build.continues;
    while let Some(id) = before {
        let Some(row) = store.get::<Build>(&id.to_string()).await? else {
            break;
        };
        let tasks = of_build(store, id).await?.into_iter();
        found.extend(tasks.filter(|task| task.state.is_active()));
        before = row.continues;
    }
    Ok(found)
}

/// Says of a task that waits for the owners of files who they are, how they stand, and what ends the wait.
async fn explained(
    store: &Store,
    build: &Build,
    task: &Task,
    refused: IllegalRequest,
) -> Result<IllegalRequest, ReadError> {
    let holders = holder::awaited(store, build, std::slice::from_ref(task)).await?;
    let told: Vec<String> = holders.iter().map(HolderView::in_words).collect();
    Ok(match told.as_slice() {
        [] => refused,
        told => IllegalRequest {
            instead: Some(told.join("; ")),
            ..refused
        },
    })
}

fn unknown(build: &Build, task: &str) -> TaskError {
    TaskError::Unknown {
        build: build.id,
        task: task.chars().take(80).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::builds::SteerError;

    #[test]
    fn what_cannot_be_asked_is_said_once() {
        let refused = IllegalRequest {
            of: "build `1`".to_owned(),
            state: "failed",
            wish: "be resumed",
            instead: Some("build `2` goes on with its work".to_owned()),
        };
        let what = "build `1` is failed, so it cannot be resumed";
        let task = TaskError::from(refused.clone());
        let build = SteerError::from(refused);
        assert_eq!(
            (task.to_string(), build.to_string()),
            (what.to_owned(), what.to_owned())
        );
        assert!(task.source().is_none() && build.source().is_none());
    }
}
