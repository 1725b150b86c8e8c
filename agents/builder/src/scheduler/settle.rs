//! Settles a build: applies what edges, free resources and passed time call for, and takes the build's next step.

use ropewalk_config::Trigger;
use ropewalk_coordination::locks;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::model_call::Spending;
use ropewalk_schemas::payload::{BuildCompleted, BuildFailedAlert};
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState};
use ropewalk_schemas::wait::Wait;
use ropewalk_schemas::{BuildId, CommitId, Payload, Subject};
use ropewalk_store::{ChangeSet, Query, retry_on_conflict};
use tracing::info;

use super::traced;
use crate::SharedState;
use crate::ask;
use crate::budget;
use crate::claim::lock_request;
use crate::claim::obstacles::Obstacles;
use crate::context::{Plan, of_build};
use crate::decide::counts::{count, ended_by_stop, pausing};
use crate::decide::readiness::edges;
use crate::decide::step::{self, Step, working_time};
use crate::effects::{Scene, party};
use crate::error::BuilderError;
use crate::machine::build;
use crate::machine::task::{Files, Input, On, State, close_requests};
use crate::outages;

/// Settles one build; returns whether anything changed.
pub(crate) async fn settle(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
) -> Result<bool, BuilderError> {
    retry_on_conflict!(BuilderError, build, {
        let Some(plan) = Plan::load(&context.store, build).await? else {
            return Ok(Some(false));
        };
        let context = of_build(context, &plan.build);
        if let Some(changes) = budget::new_day(shared, &context, &plan).await? {
            context.store.commit(changes).await?;
            return Ok(None);
        }
        let changes = settlement(shared, &context, &plan).await?;
        if changes.is_empty() {
            return Ok(Some(false));
        }
        traced::commit(&context, &plan.build, changes).await?;
        shared.signals.wake_loops();
        Ok(Some(true))
    })
}

/// Says what settling a build changes.
async fn settlement(
    shared: &SharedState,
    context: &Context,
    plan: &Plan,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let mut tasks = plan.records();
    let mut build = plan.build.record.clone();
    let moves = matches!(
        build.state,
        BuildState::Running | BuildState::Paused | BuildState::Stopped
    );
    let scene = Scene::new(shared, context, &plan.build);
    if moves {
        wake(shared, context, &scene, &mut changes, &mut tasks).await?;
        for (id, edges) in edges(&tasks) {
            if let Some(task) = tasks.iter_mut().find(|task| task.id == id) {
                *task = scene.task(&mut changes, task, Input::Edges(edges)).await?;
            }
        }
    }
    let now = context.now();
    track_working_time(&mut build, &tasks, now);
    let step = step::next(&build, &tasks, &shared.options.stop, now);
    let settled = step == Step::Continue;
    if step == Step::Conclude {
        for task in &mut tasks {
            *task = scene.task(&mut changes, task, Input::LayDown).await?;
        }
    }
    let build = take(shared, context, &mut changes, build, &tasks, step).await?;
    let waits: Vec<Wait> = changes.written();
    for (before, after) in plan.tasks.iter().zip(&tasks) {
        let waiter = party(before);
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
    Ok(changes)
}

/// Frees tasks whose quota or provider is back or whose files are free, and keeps the waits of the others true.
async fn wake(
    shared: &SharedState,
    context: &Context,
    scene: &Scene<'_>,
    changes: &mut ChangeSet,
    tasks: &mut [Task],
) -> Result<(), BuilderError> {
    for task in tasks {
        let input = match State::of(task) {
            State::Waiting {
                on: On::Quota { until },
                ..
            } if until.is_none_or(|due| due <= context.now()) => Input::Tick,
            State::Waiting { on: On::Outage, .. }
                if !outages::is_awaited(shared, context, task).await? =>
            {
                Input::ProviderBack
            }
            State::Waiting {
                on: On::Files(by), ..
            } if !scene.is_stopped() => {
                let request = lock_request(shared, context, task);
                let obstacles = Obstacles::of(context, request).await?;
                if obstacles.is_empty() {
                    if by == Files::Owned {
                        let why = "what it waited for is free";
                        let needless = ChangeRequestState::Needless;
                        close_requests(task, None, needless, why, context.now());
                    }
                    Input::FilesFree
                } else {
                    let known = locks::waits_of(&context.store, &party(task)).await?;
                    locks::renew_waits(changes, &known, &obstacles.waits());
                    obstacles.obstruction()
                }
            }
            _ => continue,
        };
        *task = scene.task(changes, task, input).await?;
    }
    Ok(())
}

/// Working time runs while an attempt runs, and stands while nothing but waits is left.
fn track_working_time(build: &mut Build, tasks: &[Task], now: chrono::DateTime<chrono::Utc>) {
    let active = tasks.iter().any(|task| task.state.is_active());
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

/// Takes the step; returns the build as it is then.
async fn take(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: Build,
    tasks: &[Task],
    step: Step,
) -> Result<Build, BuilderError> {
    let told = pausing(tasks);
    let input = match step {
        // How many still run is told as it is now.
        Step::Continue if build.pause_requested && build.state == BuildState::Running => {
            build::Input::Count { told }
        }
        Step::Continue => return Ok(build),
        Step::Pause { reason, detail } => build::Input::Rest {
            why: reason,
            detail,
        },
        Step::Resume => build::Input::GoOn,
        Step::Verify => build::Input::Verify,
        Step::Fail { reason } => {
            return fail(shared, context, changes, &build, tasks, reason).await;
        }
        Step::Stop { why, reason } => build::Input::Stop {
            why,
            told: format!("{reason}{}", ended_by_stop(tasks)),
        },
        Step::Conclude => {
            if build.continued_by.is_some() {
                let why = "a later revision is built";
                ask::supersede_all(context, changes, build.id, why).await?;
            }
            let input = build::Input::Conclude;
            return complete(shared, context, changes, &build, tasks, input).await;
        }
    };
    Scene::new(shared, context, &build)
        .among(tasks)
        .build(changes, input)
        .await
}

/// Ends a build as failed: stored, told, and raised as an alert.
pub(crate) async fn fail(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    tasks: &[Task],
    why: String,
) -> Result<Build, BuilderError> {
    let input = build::Input::Fail { why: why.clone() };
    let failed = complete(shared, context, changes, build, tasks, input).await?;
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
            reason: why,
            failed_tasks,
            severity: Some(Severity::Error),
        }),
    ));
    Ok(failed)
}

/// Ends a build by `input`, with the truth about its tasks; what was said about the way there is over.
pub(crate) async fn complete(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    tasks: &[Task],
    input: build::Input,
) -> Result<Build, BuilderError> {
    let mut build = Scene::new(shared, context, build)
        .build(changes, input)
        .await?;
    build.spent = Some(spent(context, build.id).await?);
    let (trigger, why) = (Trigger::MilestoneReached, "the build has ended");
    ask::supersede_asked(context, changes, build.id, trigger, why).await?;
    ask::supersede_refusals(context, changes, build.id, why).await?;
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
            duration_seconds: working_time(&build, context.now()).as_secs(),
            quote: build.quote.clone(),
            spent: build.spent,
            branch: build.branch.clone(),
            commits: landed(tasks),
        }),
    ));
    Ok(build)
}

/// Sums what the model calls of a build used.
async fn spent(context: &Context, build: BuildId) -> Result<Spending, BuilderError> {
    let calls = Query::new().equal("build", build.to_string());
    Ok(context.store.spending(calls).await?)
}

/// Lists the landed commits in landing order.
fn landed(tasks: &[Task]) -> Vec<CommitId> {
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
