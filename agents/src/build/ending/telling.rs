//! Tells that an attempt failed: what went wrong, whom it keeps from going on, and what a person can do.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::Payload;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::payload::TaskFailed;
use ropewalk_schemas::task::Task;

use super::{EVENT_ERROR_BYTES, Rows, bounded};
use crate::build::context::Plan;
use crate::build::decide::counts::{Standing, standing};
use crate::build::decide::failure;
use crate::build::trouble::Trouble;

/// What the end of a task means for the rest of its build.
pub(super) struct End {
    pub(super) class: FailureClass,
    pub(super) standing: Standing,
}

/// Counts whom the end of `task` keeps from going on.
pub(super) async fn standing_of(context: &Context, task: &Task) -> Result<Standing, Trouble> {
    let plan = Plan::load(&context.store, task.build).await?;
    Ok(plan.map_or_else(Standing::default, |plan| {
        standing(&plan.records(), &task.id)
    }))
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
        attempt: rows.attempt.number,
        category: failure.class,
        error: bounded(&error, EVENT_ERROR_BYTES),
        will_retry,
        blocked: standing.blocked,
        continuing: standing.continuing,
        recommended: end.map(|end| failure::recommended(end.class).to_owned()),
    })
}
