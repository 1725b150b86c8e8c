//! Watches a stuck task, asks about it, ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use ropewalk_config::Trigger;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_orchestrator::{AgentError, Context, questions, timers};
use ropewalk_schemas::payload::{DecisionMade, StuckTask, Verdict};
use ropewalk_schemas::question::About;
use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use ropewalk_store::ChangeSet;

use super::{decided, of_build};
use crate::pm::context::{self, RunningAttempt};
use crate::pm::decide::{self, StuckAction};
use crate::pm::{PmOptions, STUCK};

/// Begins to look after a stuck task, and says so once.
pub(super) async fn raised(
    options: &PmOptions,
    alert: &StuckTask,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let Some(running) = context::running(&context.store, alert.attempt_id).await? else {
        return Ok(ChangeSet::new());
    };
    let mut changes = look(options, &running, context).await?;
    if let StuckAction::Watch { again_after } = decision(options, &running, context) {
        let reason = format!(
            "no progress for {} minutes on `{}`; looked at again in {} minutes; \
             `ropewalk build retry {} {}` begins another attempt, after {} minutes you are asked whether it is skipped",
            alert.idle_minutes,
            alert.loop_name,
            again_after.as_secs().div_ceil(60),
            running.build.id,
            running.task.id,
            options.stuck.ask_after.as_secs() / 60,
        );
        let about = (running.build.id, &running.task.id);
        let decision = DecisionMade::of_task(about, Verdict::Watch, reason);
        decided(&mut changes, context, decision);
    }
    Ok(changes)
}

/// Looks again at a stuck task.
pub(super) async fn due(
    options: &PmOptions,
    target: &str,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let Ok(attempt) = target.parse::<AttemptId>() else {
        return Ok(ChangeSet::new());
    };
    match context::running(&context.store, attempt).await? {
        Some(running) => look(options, &running, &of_build(context, &running.build)).await,
        // It has ended by itself.
        None => Ok(ChangeSet::new()),
    }
}

/// Stops looking after a task that moves again or has ended.
pub(super) async fn cleared(cause: &str, context: &Context) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let Some((build, task, attempt)) = subject_of(cause) else {
        return Ok(changes);
    };
    timers::clear(&mut changes, &context.store, &[STUCK], &attempt.to_string()).await?;
    if let Some(question) =
        context::open_question(&context.store, Trigger::TaskStuck, (build, &task)).await?
    {
        questions::supersede(
            &mut changes,
            context,
            &question,
            "the task is no longer stuck",
        );
    }
    Ok(changes)
}

/// Reads the cause of an alert: `stuck/<build>/<task>/<attempt>`.
fn subject_of(cause: &str) -> Option<(BuildId, TaskId, AttemptId)> {
    let mut parts = cause.strip_prefix("stuck/")?.split('/');
    let (build, task, attempt) = (parts.next()?, parts.next()?, parts.next()?);
    Some((
        build.parse().ok()?,
        task.parse().ok()?,
        attempt.parse().ok()?,
    ))
}

fn idle(running: &RunningAttempt, context: &Context) -> Duration {
    (context.now() - running.last_sign)
        .to_std()
        .unwrap_or_default()
}

fn decision(options: &PmOptions, running: &RunningAttempt, context: &Context) -> StuckAction {
    // A wait is shown in the graph of waits and has its own exit; it is not the task that is stuck.
    let idle = if running.waits {
        Duration::ZERO
    } else {
        idle(running, context)
    };
    decide::stuck(idle, &options.stuck)
}

async fn look(
    options: &PmOptions,
    running: &RunningAttempt,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    match decision(options, running, context) {
        StuckAction::Watch { again_after } => again(&mut changes, context, running, again_after),
        StuckAction::Ask { again_after } => {
            if running.question.is_none() {
                ask(options, &mut changes, running, context).await?;
            }
            again(&mut changes, context, running, again_after);
        }
        StuckAction::Interrupt => {
            let minutes = idle(running, context).as_secs() / 60;
            let reason = format!(
                "no progress for {minutes} minutes on `{}`; the attempt was interrupted and its work is kept",
                running.attempt.loop_name
            );
            if let Some(question) = &running.question {
                questions::supersede(&mut changes, context, question, &reason);
            }
            // The build agent asks what shall become of it: only a person leaves a task out.
            let about = (running.build.id, &running.task.id);
            let decision = DecisionMade::of_task(about, Verdict::Interrupt, reason);
            decided(&mut changes, context, decision);
        }
    }
    Ok(changes)
}

/// Sets the timer of the next look.
pub(super) fn again(
    changes: &mut ChangeSet,
    context: &Context,
    running: &RunningAttempt,
    after: Duration,
) {
    let target = running.attempt.id.to_string();
    timers::set(changes, context, STUCK, &target, context.now() + after);
}

async fn ask(
    options: &PmOptions,
    changes: &mut ChangeSet,
    running: &RunningAttempt,
    context: &Context,
) -> Result<(), AgentError> {
    let last_progress = running.last_sign.format("%H:%M UTC");
    let minutes = idle(running, context).as_secs() / 60;
    let values = BTreeMap::from([
        ("task_id", running.task.id.to_string()),
        ("minutes", minutes.to_string()),
        ("loop", running.attempt.loop_name.to_string()),
        ("last_progress", last_progress.to_string()),
        (
            "interrupt_minutes",
            (options.stuck.interrupt_after.as_secs() / 60).to_string(),
        ),
    ]);
    let draft = options.templates.render(Trigger::TaskStuck, &values);
    let about = About::Task {
        build: running.build.id,
        task: running.task.id.clone(),
    };
    let draft = draft.map_err(AgentError::permanent)?;
    let asking = QuestionRequest::of(draft, about, Some(&running.build.idea));
    questions::ask(changes, context, &options.deadlines, asking).await?;
    Ok(())
}
