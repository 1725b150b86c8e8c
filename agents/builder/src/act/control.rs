//! Does what people and PM ask of a build and its tasks.

use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::payload::{BuildPriority, BuildRequest, LockRevoked, WorkAssigned};
use ropewalk_schemas::task::{ChangeRequestState, WaitReason};
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, Versioned};

use crate::SharedState;
use crate::ask;
use crate::attempt::ending;
use crate::attempt::report::Report;
use crate::attempt::rows::Rows;
use crate::claim::obstacles::conflict;
use crate::context::{self, Plan, of_build};
use crate::decide::counts::{ended_by_stop, pausing};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::{self, STOP_REQUESTED};
use crate::machine::task::{Input, On, State};
use crate::scheduler::work::{self, Work};

/// Asks for a pause: running tasks finish, nothing new begins.
pub(super) async fn pause(
    shared: &SharedState,
    context: &Context,
    request: &BuildRequest,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    if let Some(plan) = Plan::load(&context.store, request.build_id).await? {
        let told = pausing(&plan.records());
        let scene = Scene::new(shared, context, &plan.build);
        let input = build::Input::Pause { told };
        steer(&scene, &mut changes, &plan.build, input).await?;
    }
    Ok(changes)
}

/// Lets a build go on: a paused one where it stood, a stopped or failed one with another round for what failed.
pub(super) async fn resume(
    shared: &SharedState,
    context: &Context,
    request: &BuildRequest,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some(plan) = Plan::load(&context.store, request.build_id).await? else {
        return Ok(changes);
    };
    let scene = Scene::new(shared, context, &plan.build);
    steer(&scene, &mut changes, &plan.build, build::Input::Resume).await?;
    let (trigger, why) = (Trigger::BuildHeld, "the build was resumed");
    ask::supersede_asked(context, &mut changes, request.build_id, trigger, why).await?;
    work::count_anew(context, &mut changes, request.build_id, &Work::IN_HAND).await?;
    for task in &plan.tasks {
        let input = match (plan.build.state, State::of(task)) {
            (
                BuildState::Paused,
                State::Waiting {
                    on: On::Check { .. } | On::Quota { .. } | On::Budget { .. } | On::Outage,
                    ..
                },
            ) => Input::Resume,
            (BuildState::Stopped | BuildState::Failed, State::Failed { .. }) => {
                Input::Retry { guidance: None }
            }
            _ => continue,
        };
        let after = scene.task(&mut changes, task, input).await?;
        changes.update(task, &after);
    }
    Ok(changes)
}

/// Stops a build: running attempts end with their work kept, the rest stays pending.
pub(crate) async fn stop(
    shared: &SharedState,
    context: &Context,
    request: &BuildRequest,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    if let Some(Plan { build, tasks }) = Plan::load(&context.store, request.build_id).await? {
        let why = request.reason.as_deref().map(|why| format!(": {why}"));
        let why = why.unwrap_or_default();
        let ended = ended_by_stop(tasks.iter().map(|task| &task.record));
        let by = &request.requested_by;
        let input = build::Input::Stop {
            why: StopCause::Person,
            told: format!("{STOP_REQUESTED} by {by}{why}{ended}"),
        };
        let scene = Scene::new(shared, context, &build);
        steer(&scene, &mut changes, &build, input).await?;
        let (trigger, why) = (Trigger::BuildHeld, "the build was stopped");
        ask::supersede_asked(context, &mut changes, request.build_id, trigger, why).await?;
    }
    Ok(changes)
}

/// Makes a build more or less urgent. What its tasks asked of the owners of files is ruled on anew: a build that has
/// become more urgent than an owner need not wait for it.
pub(super) async fn rank(
    shared: &SharedState,
    context: &Context,
    wish: &BuildPriority,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some(Plan { build, tasks }) = Plan::load(&context.store, wish.build_id).await? else {
        return Ok(changes);
    };
    let scene = Scene::new(shared, context, &build);
    let input = build::Input::Rank {
        priority: wish.priority,
    };
    steer(&scene, &mut changes, &build, input).await?;
    let waiting = tasks
        .iter()
        .filter(|task| task.waiting_for == Some(WaitReason::Owner));
    for task in waiting {
        for open in &task.change_requests {
            if open.state == ChangeRequestState::Requested {
                changes.emit(conflict(context, task, &open.file, open.owner));
            }
        }
    }
    Ok(changes)
}

/// Applies an input to the build of a scene and stores what became of it.
pub(super) async fn steer(
    scene: &Scene<'_>,
    changes: &mut ChangeSet,
    build: &Versioned<Build>,
    input: build::Input,
) -> Result<(), BuilderError> {
    let after = scene.build(changes, input).await?;
    if after != build.record {
        changes.update(build, &after);
    }
    Ok(())
}

/// Gives a task another round of tries; its build runs again, where it had ended. One that a person stopped does so for an
/// `express` wish alone, which takes the right to let it go on; an answer to a question does not.
pub(super) async fn retry(
    shared: &SharedState,
    context: &Context,
    about: (BuildId, &TaskId),
    guidance: Option<String>,
    express: bool,
) -> Result<ChangeSet, BuilderError> {
    let revive = build::Input::Revive { express };
    let input = Input::Retry { guidance };
    apply(shared, context, about, input, Some(revive)).await
}

/// Leaves a task out; one that runs is ended first.
pub(super) async fn skip(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    by: &str,
    reason: &str,
) -> Result<ChangeSet, BuilderError> {
    let revive = build::Input::Revive { express: false };
    let input = Input::Skip {
        by: by.to_owned(),
        why: reason.to_owned(),
    };
    apply(shared, context, (build, task), input, Some(revive)).await
}

/// Ends a running attempt on somebody's word: its work is kept, its try is not counted, the task is ready again.
pub(super) async fn interrupt(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    reason: &str,
) -> Result<ChangeSet, BuilderError> {
    let input = Input::Interrupt {
        why: reason.to_owned(),
    };
    apply(shared, context, (build, task), input, None).await
}

/// Notes which loop should take a task.
pub(super) async fn assign(
    shared: &SharedState,
    context: &Context,
    assignment: &WorkAssigned,
) -> Result<ChangeSet, BuilderError> {
    let about = (assignment.build_id, &assignment.task_id);
    let input = Input::Assign(assignment.to.clone());
    apply(shared, context, about, input, None).await
}

/// Applies an input to a task, and one to its build, and stores what became of them.
pub(super) async fn apply(
    shared: &SharedState,
    context: &Context,
    (build, task): (BuildId, &TaskId),
    input: Input,
    of_its_build: Option<build::Input>,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let (Some(build), Some(row)) = (
        context::build(&context.store, build).await?,
        context::task(&context.store, build, task).await?,
    ) else {
        return Ok(changes);
    };
    let context = of_build(context, &build);
    let scene = Scene::new(shared, &context, &build);
    let after = scene.task(&mut changes, &row, input).await?;
    changes.update(&row, &after);
    if let Some(input) = of_its_build {
        steer(&scene, &mut changes, &build, input).await?;
    }
    Ok(changes)
}

/// Puts the task of an attempt back that lost locks. Where it runs, it is ended after the commit and keeps its work
/// before its task is free.
pub(super) async fn revoked(
    shared: &SharedState,
    context: &Context,
    lost: &LockRevoked,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    if shared.signals.is_running(lost.attempt_id) {
        return Ok(changes);
    }
    let rows = Rows::load(context, lost.build_id, &lost.task_id, lost.attempt_id).await?;
    if let Some(rows) = rows {
        let report = Report::default();
        ending::requeue(
            shared,
            context,
            &mut changes,
            &rows,
            &lost.reason,
            None,
            &report,
        )
        .await?;
    }
    Ok(changes)
}
