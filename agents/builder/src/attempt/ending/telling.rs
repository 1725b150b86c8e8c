//! Tells that an attempt failed: what went wrong, whom it keeps from going on, and what a person can do.

use ropewalk_schemas::Payload;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::payload::TaskFailed;
use ropewalk_schemas::task::Task;

use super::EVENT_ERROR_BYTES;
use crate::attempt::rows::Rows;
use crate::decide::counts::TaskImpact;
use crate::decide::failure;

/// What the end of a task means for the rest of its build.
pub(super) struct End {
    pub(super) class: FailureClass,
    pub(super) standing: TaskImpact,
}

/// Says to everybody that an attempt failed.
pub(super) fn told_failed(
    rows: &Rows,
    task: &Task,
    failure: &Failure,
    will_retry: bool,
    end: Option<&End>,
) -> Payload {
    let error = match end.map(|end| end.class) {
        Some(FailureClass::NoProgress) => {
            let tried: Vec<String> = task
                .failures
                .iter()
                .map(|one| one.attempt.to_string())
                .collect();
            let tried = tried.join(", ");
            format!(
                "attempts {tried} ended with the same error and no change between them\n{}",
                failure.error
            )
        }
        _ => failure.error.clone(),
    };
    let standing = end.map(|end| end.standing).unwrap_or_default();
    Payload::TaskFailed(TaskFailed {
        build_id: rows.task.build,
        task_id: rows.task.id.clone(),
        idea_slug: rows.build.idea.clone(),
        attempt: failure.attempt,
        category: failure.class,
        error: clip::ends(&error, EVENT_ERROR_BYTES, Weight::Tail).into_owned(),
        will_retry,
        blocked: standing.blocked,
        continuing: standing.continuing,
        recommended: end.map(|end| failure::recommended(end.class).to_owned()),
    })
}
