//! Settles a build: applies what edges, free resources and passed time call for, and takes the build's next step.

use ropewalk_bus::locks;
use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::model_call::Spending;
use ropewalk_schemas::payload::{BuildCompleted, BuildFailedAlert, BuildPaused, TaskSkipped};
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState, WaitReason};
use ropewalk_schemas::wait::Wait;
use ropewalk_schemas::{BuildId, CommitId, Payload, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Query};
use tracing::{error, info};

use super::Shop;
use super::ask;
use super::claim::lock_request;
use super::context::{CONFLICTS, Plan, of_build};
use super::decide::counts::{count, ended_by_stop, is_active, pausing};
use super::decide::readiness::{Shift, shifts};
use super::decide::step::{self, Step, working_time};
use super::ending;
use super::obstacles::{Obstacles, close_requests};
use super::purse;
use super::trouble::Trouble;

/// Settles one build; returns whether anything changed.
pub(crate) async fn settle(
    shop: &Shop,
    context: &Context,
    build: BuildId,
) -> Result<bool, Trouble> {
    for _ in 0..CONFLICTS {
        let Some(plan) = Plan::load(&context.store, build).await? else {
            return Ok(false);
        };
        let context = of_build(context, &plan.build);
        if let Some(changes) = purse::new_day(&context, &plan).await? {
            match context.store.commit(changes).await {
                Ok(_) | Err(CommitError::Conflict { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        let settlement = Settlement::of(shop, &context, &plan).await?;
        if settlement.changes.is_empty() {
            return Ok(false);
        }
        match context.store.commit(settlement.changes).await {
            Ok(_) => {
                if settlement.ends_attempts {
                    shop.signals.cancel_build(build);
                }
                shop.signals.ring_loops();
                return Ok(true);
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(format!("build/{build}")))
}

/// What settling a build changes.
struct Settlement {
    changes: ChangeSet,
    ends_attempts: bool,
}

impl Settlement {
    async fn of(shop: &Shop, context: &Context, plan: &Plan) -> Result<Self, Trouble> {
        let mut changes = ChangeSet::new();
        let mut tasks = plan.records();
        let mut build = plan.build.record.clone();
        let moves = matches!(
            build.state,
            BuildState::Running | BuildState::Paused | BuildState::Stopped
        );
        if moves {
            wake(shop, context, &mut changes, &build, &mut tasks).await?;
            for shift in shifts(&tasks) {
                apply(context, &mut changes, &build, &mut tasks, shift);
            }
        }
        let now = context.now();
        track_working_time(&mut build, &tasks, now);
        let step = step::next(&build, &tasks, &shop.options.stop, now);
        if matches!(step, Step::Fail { .. } | Step::Conclude) {
            build.spent = Some(spent(context, build.id).await?);
        }
        let ends_attempts = matches!(step, Step::Stop { .. });
        let settled = step == Step::Continue;
        if step == Step::Conclude {
            lay_down(context, &mut changes, &mut tasks).await?;
            purse::forget(context, &mut changes, &mut build, "the build was stopped").await?;
        }
        take(context, &mut changes, &mut build, &tasks, step).await?;
        let waits: Vec<Wait> = changes.written();
        for (before, after) in plan.tasks.iter().zip(&tasks) {
            let waiter = ending::party(before);
            if before.record != *after {
                changes.update(before, after);
            } else if !settled || waits.iter().any(|wait| wait.waiter == waiter) {
                // The step rests on every task being as it was read, and a wait on its waiter still waiting.
                changes.require(before);
            }
        }
        if build != plan.build.record {
            changes.update(&plan.build, &build);
        }
        Ok(Self {
            changes,
            ends_attempts,
        })
    }
}

/// Frees tasks whose quota is back or whose files are free, and keeps the waits of the others true.
async fn wake(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    tasks: &mut [Task],
) -> Result<(), Trouble> {
    for task in tasks
        .iter_mut()
        .filter(|task| task.state == TaskState::Waiting)
    {
        let reason = match task.waiting_for {
            Some(WaitReason::Quota) => task
                .not_before
                .is_none_or(|due| due <= context.now())
                .then_some("the quota is back"),
            // The end of a stopped build ends its waits.
            Some(WaitReason::Lock | WaitReason::Owner) if build.state == BuildState::Stopped => {
                None
            }
            Some(WaitReason::Lock | WaitReason::Owner) => is_free(shop, context, changes, task)
                .await?
                .then_some("what it waited for is free"),
            _ => None,
        };
        if let Some(reason) = reason {
            ending::stop_waiting(context, changes, task).await?;
            if task.waiting_for == Some(WaitReason::Owner) {
                let needless = ChangeRequestState::Needless;
                close_requests(task, None, needless, reason, context.now());
                ask::supersede(context, changes, task, reason).await?;
            }
            go(task, TaskState::Ready);
            task.waiting_for = None;
            task.not_before = None;
            task.reason = Some(format!("ready; {reason}"));
        }
    }
    Ok(())
}

/// Leaves what a stopped build did not come to as pending: nothing of it waits for anybody any more.
async fn lay_down(
    context: &Context,
    changes: &mut ChangeSet,
    tasks: &mut [Task],
) -> Result<(), Trouble> {
    for task in tasks.iter_mut() {
        match (task.state, task.waiting_for) {
            (TaskState::Ready, _) => {}
            // What a person was asked stays asked, with the work that it is about.
            (TaskState::Waiting, Some(reason)) if reason != WaitReason::Person => {
                ending::stop_waiting(context, changes, task).await?;
            }
            _ => continue,
        }
        go(task, TaskState::Pending);
        task.waiting_for = None;
        task.waits_since = None;
        task.reason = Some("pending; the build was stopped before it".to_owned());
    }
    Ok(())
}

/// Looks whether the files of a task are free; if not, writes down who holds them now.
async fn is_free(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    task: &mut Task,
) -> Result<bool, Trouble> {
    let request = lock_request(shop, context, task);
    let obstacles = Obstacles::of(context, request).await?;
    if obstacles.is_empty() {
        return Ok(true);
    }
    let known = locks::waits_of(&context.store, &ending::party(task)).await?;
    locks::renew_waits(changes, &known, &obstacles.waits());
    obstacles.tell(task);
    Ok(false)
}

fn apply(
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    tasks: &mut [Task],
    shift: Shift,
) {
    let Some(task) = tasks.iter_mut().find(|task| task.id == shift.task) else {
        return;
    };
    if shift.to == TaskState::Skipped && task.state != TaskState::Skipped {
        let reason = shift.reason.clone().unwrap_or_default();
        changes.emit(skipped(context, build, &task.id, "build", reason));
    }
    go(task, shift.to);
    task.reason = shift.reason;
    task.blocked_by = shift.blocked_by;
}

/// Makes the event that a task was left out.
pub(crate) fn skipped(
    context: &Context,
    build: &Build,
    task: &TaskId,
    by: &str,
    reason: String,
) -> ropewalk_schemas::Event {
    context.event(
        Subject::task(build.id, task),
        Payload::TaskSkipped(TaskSkipped {
            build_id: build.id,
            task_id: task.clone(),
            idea_slug: build.idea.clone(),
            skipped_by: by.to_owned(),
            reason,
        }),
    )
}

/// Moves a task to `to`, over `ready` where there is no direct way.
pub(crate) fn go(task: &mut Task, to: TaskState) {
    if task.state == to {
        return;
    }
    let over_ready = || task.state.to(TaskState::Ready)?.to(to);
    match task.state.to(to).or_else(|_| over_ready()) {
        Ok(state) => task.state = state,
        Err(refused) => error!(task.id = %task.id, "{refused}"),
    }
}

/// Working time runs while an attempt runs, and stands while nothing but waits is left.
fn track_working_time(build: &mut Build, tasks: &[Task], now: chrono::DateTime<chrono::Utc>) {
    let active = tasks.iter().any(|task| is_active(task.state));
    match (active, build.working_since) {
        (true, None) => build.working_since = Some(now),
        (false, Some(_)) => {
            let so_far = working_time(build, now).as_millis();
            build.working_ms = u64::try_from(so_far).unwrap_or(u64::MAX);
            build.working_since = None;
        }
        _ => {}
    }
}

async fn take(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
    tasks: &[Task],
    step: Step,
) -> Result<(), Trouble> {
    match step {
        // How many still run is told as it is now.
        Step::Continue if build.pause_requested && build.state == BuildState::Running => {
            build.reason = Some(pausing(tasks));
        }
        Step::Continue => {}
        Step::Pause { reason, detail } => {
            enter(build, BuildState::Paused);
            build.pause_reason = Some(reason);
            build.reason = Some(detail.clone());
            changes.emit(context.event(
                Subject::build(build.id),
                Payload::BuildPaused(BuildPaused {
                    build_id: build.id,
                    idea_slug: build.idea.clone(),
                    reason,
                    detail,
                }),
            ));
        }
        Step::Resume => {
            enter(build, BuildState::Running);
            build.pause_reason = None;
            build.reason = None;
        }
        Step::Verify => {
            enter(build, BuildState::Verifying);
            build.reason = Some("the whole is checked".to_owned());
        }
        Step::Fail { reason } => fail(context, changes, build, tasks, reason).await?,
        Step::Stop { reason } => {
            enter(build, BuildState::Stopped);
            build.reason = Some(format!("{reason}{}", ended_by_stop(tasks)));
            build.completed_at = None;
        }
        Step::Conclude => complete(context, changes, build, tasks).await?,
    }
    Ok(())
}

/// Ends a build as failed: stored, told, and raised as an alert.
pub(crate) async fn fail(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
    tasks: &[Task],
    reason: String,
) -> Result<(), Trouble> {
    enter(build, BuildState::Failed);
    build.reason = Some(reason.clone());
    complete(context, changes, build, tasks).await?;
    let failed_tasks = tasks
        .iter()
        .filter(|task| task.state == TaskState::Failed)
        .map(|task| task.id.clone())
        .collect();
    changes.emit(context.event(
        Subject::build(build.id),
        Payload::BuildFailed(BuildFailedAlert {
            build_id: build.id,
            idea_slug: build.idea.clone(),
            reason,
            failed_tasks,
        }),
    ));
    Ok(())
}

/// Writes down that a build has ended in the state it is in, with the truth about its tasks; what was said about the
/// way there is over.
pub(crate) async fn complete(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
    tasks: &[Task],
) -> Result<(), Trouble> {
    let trigger = Trigger::MilestoneReached;
    ask::supersede_asked(context, changes, build.id, trigger, "the build has ended").await?;
    let now = context.now();
    build.completed_at = Some(now);
    info!(build.id = %build.id, "build `{}` of `{}` ended: {}", build.id, build.idea, build.state);
    changes.emit(context.event(
        Subject::build(build.id),
        Payload::BuildCompleted(BuildCompleted {
            build_id: build.id,
            spec_id: build.spec,
            idea_slug: build.idea.clone(),
            status: build.state,
            reason: build.reason.clone(),
            counts: count(tasks),
            duration_seconds: working_time(build, now).as_secs(),
            quote: build.quote.clone(),
            spent: build.spent,
            branch: build.branch.clone(),
            commits: landed(tasks),
        }),
    ));
    Ok(())
}

/// Sums what the model calls of a build used.
pub(crate) async fn spent(context: &Context, build: BuildId) -> Result<Spending, Trouble> {
    let calls = Query::new().equal("build", build.to_string());
    Ok(context.store.spending(calls).await?)
}

/// Lists the landed commits in landing order.
pub(crate) fn landed(tasks: &[Task]) -> Vec<CommitId> {
    let mut landed: Vec<(&Task, &CommitId)> = tasks
        .iter()
        .filter_map(|task| task.commit.as_ref().map(|commit| (task, commit)))
        .collect();
    landed.sort_by_key(|(task, _)| (task.completed_at, task.number));
    landed
        .into_iter()
        .map(|(_, commit)| commit.clone())
        .collect()
}

/// Moves a build to `to`; a way that is not allowed is a mistake of this program and is said aloud.
pub(crate) fn enter(build: &mut Build, to: BuildState) {
    match build.state.to(to) {
        Ok(state) => build.state = state,
        Err(refused) => error!(build.id = %build.id, "{refused}"),
    }
}
