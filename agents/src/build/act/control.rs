//! Does what people and PM ask of a build and its tasks.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{AttemptState, Failure, FailureClass};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::{BuildRequest, LockRevoked, WorkAssigned};
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, Versioned};

use crate::build::Shop;
use crate::build::ask;
use crate::build::context::{self, Plan, of_build};
use crate::build::decide::counts::{ended_by_stop, is_active, pausing};
use crate::build::decide::failure::fingerprint;
use crate::build::decide::step::working_time;
use crate::build::ending::{self, Report, Rows};
use crate::build::purse;
use crate::build::settle::{enter, go, skipped};
use crate::build::trouble::Trouble;

/// How the reason of a build begins that a person stopped.
pub(super) const STOP_REQUESTED: &str = "stop requested";

/// Why questions of a build that goes on are closed.
const RESUMED: &str = "the build was resumed";

/// Asks for a pause: running tasks finish, nothing new begins.
pub(super) async fn pause(context: &Context, request: &BuildRequest) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(plan) = Plan::load(&context.store, request.build_id).await? else {
        return Ok(changes);
    };
    if plan.build.completed_at.is_some() || plan.build.pause_requested {
        return Ok(changes);
    }
    let after = Build {
        pause_requested: true,
        reason: Some(pausing(&plan.records())),
        ..plan.build.record.clone()
    };
    changes.update(&plan.build, &after);
    Ok(changes)
}

/// Lets a build go on: a paused one where it stood, a stopped or failed one with another round for what failed.
pub(super) async fn resume(
    context: &Context,
    request: &BuildRequest,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(plan) = Plan::load(&context.store, request.build_id).await? else {
        return Ok(changes);
    };
    // Its branch belongs to the build that goes on from it.
    if plan.build.continued_by.is_some() {
        return Ok(changes);
    }
    let mut build = plan.build.record.clone();
    build.pause_requested = false;
    match build.state {
        BuildState::Paused => {
            enter(&mut build, BuildState::Running);
            build.pause_reason = None;
            build.reason = None;
            build.question = None;
            purse::forget(context, &mut changes, &mut build, RESUMED).await?;
            for task in &plan.tasks {
                let resumed = matches!(
                    task.waiting_for,
                    Some(WaitReason::Check | WaitReason::Quota | WaitReason::Budget)
                );
                if task.state == TaskState::Waiting && resumed {
                    let mut after = task.record.clone();
                    make_ready(&mut after, "ready; the build was resumed");
                    ending::stop_waiting(context, &mut changes, task).await?;
                    changes.update(task, &after);
                }
            }
        }
        BuildState::Stopped | BuildState::Failed => {
            revive(context, &mut changes, &mut build).await?;
            for task in &plan.tasks {
                if task.state == TaskState::Failed {
                    let mut after = task.record.clone();
                    new_round(&mut after, None);
                    ask::supersede(context, &mut changes, task, RESUMED).await?;
                    changes.update(task, &after);
                }
            }
        }
        _ => {}
    }
    if build != plan.build.record {
        changes.update(&plan.build, &build);
    }
    Ok(changes)
}

/// Stops a build: running attempts end with their work kept, the rest stays pending.
pub(crate) async fn stop(
    shop: &Shop,
    context: &Context,
    request: &BuildRequest,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(Plan { build, tasks }) = Plan::load(&context.store, request.build_id).await? else {
        return Ok(changes);
    };
    let mut stopped = build.record.clone();
    if stopped.state.to(BuildState::Stopped).is_err() {
        return Ok(changes);
    }
    enter(&mut stopped, BuildState::Stopped);
    let why = request.reason.as_deref().map(|why| format!(": {why}"));
    let why = why.unwrap_or_default();
    let ended = ended_by_stop(tasks.iter().map(|task| &task.record));
    stopped.reason = Some(format!(
        "{STOP_REQUESTED} by {}{why}{ended}",
        request.requested_by
    ));
    stopped.pause_requested = false;
    stopped.pause_reason = None;
    stopped.completed_at = None;
    changes.update(&build, &stopped);
    shop.signals.cancel_build(build.id);
    Ok(changes)
}

/// Lets a stopped or failed build run again, with a fresh allowance where time had run out; nothing that was asked about
/// its end holds it any more.
pub(crate) async fn revive(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
) -> Result<(), Trouble> {
    let limited = build
        .reason
        .as_deref()
        .is_some_and(|reason| reason.starts_with("time limit"));
    enter(build, BuildState::Running);
    build.reason = None;
    build.pause_reason = None;
    build.completed_at = None;
    build.working_ms = if limited {
        0
    } else {
        u64::try_from(working_time(build, context.now()).as_millis()).unwrap_or(u64::MAX)
    };
    build.working_since = None;
    build.question = None;
    purse::stop_waiting(context, changes, build).await?;
    Ok(ask::supersede_about(context, changes, build.id, RESUMED).await?)
}

/// Gives a task another round of tries.
pub(super) async fn retry(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    guidance: Option<String>,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let (Some(build), Some(task)) = (
        context::build(&context.store, build).await?,
        context::task(&context.store, build, task).await?,
    ) else {
        return Ok(changes);
    };
    if is_active(task.state) {
        return interrupt(shop, context, build.id, &task.id, "tried again on request").await;
    }
    if task.state == TaskState::Complete {
        return Ok(changes);
    }
    let mut after = task.record.clone();
    new_round(&mut after, guidance);
    ending::stop_waiting(context, &mut changes, &task).await?;
    ask::supersede(context, &mut changes, &task, "the task is tried again").await?;
    changes.update(&task, &after);
    run_again(context, &mut changes, &build, true).await?;
    Ok(changes)
}

/// Lets a build run again whose task people revived; one that a person stopped only for an express wish.
pub(super) async fn run_again(
    context: &Context,
    changes: &mut ChangeSet,
    build: &Versioned<Build>,
    express: bool,
) -> Result<(), Trouble> {
    let stopped_by_person = build
        .reason
        .as_deref()
        .is_some_and(|reason| reason.starts_with(STOP_REQUESTED));
    let over = matches!(build.state, BuildState::Stopped | BuildState::Failed)
        && build.continued_by.is_none();
    if over && (express || !stopped_by_person) {
        let mut after = build.record.clone();
        revive(context, changes, &mut after).await?;
        changes.update(build, &after);
    }
    Ok(())
}

/// Begins another round: fresh tries, nothing of the earlier round but the advice.
pub(super) fn new_round(task: &mut Task, guidance: Option<String>) {
    make_ready(task, "ready; another round was asked for");
    task.blocked_by.clear();
    task.question = None;
    task.tries = 0;
    task.installs = 0;
    task.rebases = 0;
    task.failures.clear();
    let guidance = guidance.map(|text| text.trim().to_owned());
    task.guidance
        .extend(guidance.filter(|text| !text.is_empty()));
}

/// Lets a task be claimed again.
pub(crate) fn make_ready(task: &mut Task, reason: &str) {
    go(task, TaskState::Ready);
    task.waiting_for = None;
    task.not_before = None;
    task.reason = Some(reason.to_owned());
}

/// Leaves a task out; one that runs is ended first.
pub(super) async fn skip(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    by: &str,
    reason: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let (Some(build), Some(row)) = (
        context::build(&context.store, build).await?,
        context::task(&context.store, build, task).await?,
    ) else {
        return Ok(changes);
    };
    if matches!(row.state, TaskState::Complete | TaskState::Skipped) {
        return Ok(changes);
    }
    let context = of_build(context, &build);
    let mut after = row.record.clone();
    if let Some(attempt) = row.attempt
        && let Some(rows) = Rows::load(&context, build.id, task, attempt).await?
    {
        end_running(&context, &mut changes, &rows, reason).await?;
        shop.signals.cancel_task(build.id, task);
        after.attempt = None;
        after.claimed_at = None;
    } else {
        ending::stop_waiting(&context, &mut changes, &row).await?;
    }
    go(&mut after, TaskState::Skipped);
    after.waiting_for = None;
    after.not_before = None;
    after.question = None;
    after.blocked_by.clear();
    after.reason = Some(format!("skipped by {by}: {reason}"));
    ask::supersede(&context, &mut changes, &row, "the task was skipped").await?;
    changes.update(&row, &after);
    changes.emit(skipped(&context, &build, task, by, reason.to_owned()));
    run_again(&context, &mut changes, &build, false).await?;
    Ok(changes)
}

/// Ends a running attempt on somebody's word: its work is kept, its try is not counted, the task is ready again.
pub(super) async fn interrupt(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    reason: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::task(&context.store, build, task).await? else {
        return Ok(changes);
    };
    let Some(attempt) = row.attempt else {
        return Ok(changes);
    };
    let Some(rows) = Rows::load(context, build, task, attempt).await? else {
        return Ok(changes);
    };
    let context = of_build(context, &rows.build);
    let mut after = row.record.clone();
    make_ready(&mut after, &format!("ready again: {reason}"));
    after.attempt = None;
    after.claimed_at = None;
    changes.update(&row, &after);
    end_running(&context, &mut changes, &rows, reason).await?;
    shop.signals.cancel_task(build, task);
    Ok(changes)
}

/// Ends the attempt that lost locks. Where it runs it keeps its work itself; one that runs nowhere here is put back.
pub(super) async fn revoked(
    shop: &Shop,
    context: &Context,
    lost: &LockRevoked,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    if shop.signals.cancel_attempt(lost.attempt_id, &lost.reason) {
        return Ok(changes);
    }
    let rows = Rows::load(context, lost.build_id, &lost.task_id, lost.attempt_id).await?;
    if let Some(rows) = rows {
        let context = of_build(context, &rows.build).because_of(rows.task.cause);
        let report = Report::default();
        ending::requeue(&context, &mut changes, &rows, &lost.reason, None, &report).await?;
    }
    Ok(changes)
}

async fn end_running(
    context: &Context,
    changes: &mut ChangeSet,
    rows: &Rows,
    reason: &str,
) -> Result<(), Trouble> {
    // The reason tells an interruption that was meant from a crash, after which the same work is run again.
    let failure = Failure {
        class: FailureClass::Unknown,
        error: reason.to_owned(),
        attempt: rows.attempt.number,
        fingerprint: fingerprint(FailureClass::Unknown, reason, &[]),
    };
    let report = Report::default();
    ending::end_attempt(
        context,
        changes,
        rows,
        AttemptState::Interrupted,
        Some(failure),
        &report,
    );
    ending::release(context, changes, rows).await
}

/// Notes which loop should take a task.
pub(super) async fn assign(
    context: &Context,
    assignment: &WorkAssigned,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let row = context::task(&context.store, assignment.build_id, &assignment.task_id).await?;
    if let Some(row) = row
        && !is_active(row.state)
        && row.state != TaskState::Complete
    {
        let after = Task {
            assigned_to: Some(assignment.to.clone()),
            ..row.record.clone()
        };
        changes.update(&row, &after);
    }
    Ok(changes)
}
