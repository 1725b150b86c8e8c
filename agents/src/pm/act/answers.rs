//! Does what people answered to PM's questions.

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{DecisionNeeded, TaskStuck};
use ropewalk_orchestrator::{AgentError, Context, timers};
use ropewalk_schemas::payload::{
    BuildRequest, BuildTell, DecisionMade, QuestionAnswered, TaskRetry, Verdict,
};
use ropewalk_schemas::question::{About, Content, Question};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, Event, Payload, Subject, TaskId};
use ropewalk_store::{ChangeSet, task_key};

use super::{change, decided, provider, stuck};
use crate::pm::context::{self, RunningAttempt};
use crate::pm::decide::{self, StuckAction};
use crate::pm::{PmOptions, STUCK};

/// Handles an answer; answers to the questions of others are none of ours.
pub(super) async fn answered(
    options: &PmOptions,
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    match (Trigger::parse(&answer.trigger), &answer.about) {
        (Some(Trigger::TaskStuck), About::Task { build, task }) => {
            stuck_task(options, answer, (*build, task), context).await
        }
        (Some(Trigger::ChangeRequested), About::Task { build, task }) => {
            change::answered(answer, (*build, task), context).await
        }
        (Some(Trigger::ProviderKeyRefused), About::Nothing) => {
            provider::answered(answer, context).await
        }
        (Some(Trigger::DecisionNeeded), About::Task { build, task }) => {
            about_task(answer, (*build, task), context).await
        }
        (Some(Trigger::DecisionNeeded), About::Build { build }) => {
            Ok(about_build(answer, *build, context))
        }
        _ => Ok(ChangeSet::new()),
    }
}

/// Finds the attempt that was asked about, if it still runs.
async fn asked_about(
    answer: &QuestionAnswered,
    (build, task): (BuildId, &TaskId),
    context: &Context,
) -> Result<Option<RunningAttempt>, AgentError> {
    let question = context
        .store
        .get::<Question>(&answer.question_id.to_string())
        .await?;
    let task = context::task(&context.store, build, task).await?;
    let (Some(question), Some(attempt)) = (question, task.and_then(|task| task.attempt)) else {
        return Ok(None);
    };
    let running = context::running(&context.store, attempt).await?;
    // An attempt that began after the question is not the one that was stuck.
    Ok(running.filter(|running| running.attempt.started_at <= question.asked_at))
}

async fn stuck_task(
    options: &PmOptions,
    answer: &QuestionAnswered,
    about: (BuildId, &TaskId),
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let Some(running) = asked_about(answer, about, context).await? else {
        return Ok(changes);
    };
    let by = &answer.answered_by;
    let verdict = match TaskStuck::of(answer.choice.as_ref()) {
        Some(TaskStuck::Wait) | None => {
            // The stored answer is what its age counts from, so nothing is lost with this process.
            let idle = (context.now() - running.last_sign)
                .to_std()
                .unwrap_or_default();
            let again_after = match decide::stuck(idle, &options.stuck) {
                StuckAction::Watch { again_after } | StuckAction::Ask { again_after } => {
                    again_after
                }
                StuckAction::Interrupt => options.stuck.watch_every,
            };
            stuck::again(&mut changes, context, &running, again_after);
            Verdict::Watch
        }
        Some(TaskStuck::Skip) => Verdict::Skip,
        Some(TaskStuck::Retry) => Verdict::Retry,
    };
    if verdict != Verdict::Watch {
        let target = running.attempt.id.to_string();
        timers::clear(&mut changes, &context.store, &[STUCK], &target).await?;
    }
    let told = || format!("`{by}` answered `{}` about the stuck task", answer.answer);
    let reason = answer.why().map_or_else(told, str::to_owned);
    tell(&mut changes, context, about, (verdict, reason), by);
    Ok(changes)
}

async fn about_task(
    answer: &QuestionAnswered,
    (build, task): (BuildId, &TaskId),
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let by = &answer.answered_by;
    let verdict = match DecisionNeeded::of(answer.choice.as_ref()) {
        Some(DecisionNeeded::Retry) => Verdict::Retry,
        Some(DecisionNeeded::Skip) => Verdict::Skip,
        Some(DecisionNeeded::Interrupt) => Verdict::Interrupt,
        Some(DecisionNeeded::Guide) => {
            changes.emit(heard(answer, (build, task), answer.answer.clone(), context).await?);
            return Ok(changes);
        }
        Some(allowed @ (DecisionNeeded::AllowCall | DecisionNeeded::AllowRule)) => {
            let id = answer.question_id.to_string();
            let question = context.store.get::<Question>(&id).await?;
            let shown = question.and_then(|question| question.record.content);
            let told = shown.and_then(|shown| told_allowed(allowed, &shown));
            if let Some(told) = told {
                changes.emit(heard(answer, (build, task), told, context).await?);
            }
            return Ok(changes);
        }
        // The others are offered about builds.
        Some(DecisionNeeded::Leave | DecisionNeeded::Pause | DecisionNeeded::Stop) | None => {
            return Ok(changes);
        }
    };
    let told = || format!("`{by}` decided: {}", answer.answer);
    let reason = answer.why().map_or_else(told, str::to_owned);
    tell(&mut changes, context, (build, task), (verdict, reason), by);
    Ok(changes)
}

/// Tells the build agent what a person decided about a task.
fn tell(
    changes: &mut ChangeSet,
    context: &Context,
    about: (BuildId, &TaskId),
    (verdict, reason): (Verdict, String),
    by: &str,
) {
    let decision = DecisionMade {
        decided_by: Some(by.to_owned()),
        ..DecisionMade::of_task(about, verdict, reason)
    };
    decided(changes, context, decision);
}

/// Lets the model of a task hear words: at its next turn where it works, else in another round.
async fn heard(
    answer: &QuestionAnswered,
    (build, task): (BuildId, &TaskId),
    words: String,
    context: &Context,
) -> Result<Event, AgentError> {
    let row = context.store.get::<Task>(&task_key(build, task)).await?;
    let is_active = row.is_some_and(|row| row.state.is_active());
    let (task_id, by) = (task.clone(), answer.answered_by.clone());
    let payload = if is_active {
        Payload::BuildTell(BuildTell {
            build_id: build,
            task_id,
            said_by: by,
            text: words,
        })
    } else {
        Payload::TaskRetry(TaskRetry {
            build_id: build,
            task_id,
            requested_by: by,
            guidance: Some(words),
            // Who answers need not have the right to let a stopped build go on.
            may_resume: false,
        })
    };
    Ok(context.event(Subject::task(build, task), payload))
}

/// Says to the model what it may do now.
fn told_allowed(allowed: DecisionNeeded, content: &Content) -> Option<String> {
    let Content::Call {
        rule,
        tool,
        subject,
    } = content
    else {
        return None;
    };
    Some(if allowed == DecisionNeeded::AllowRule {
        format!(
            "What {rule} leaves to a person is allowed now, `{subject}` with `{tool}` too. Do it if the task needs it."
        )
    } else {
        format!(
            "This is allowed now: `{subject}` with `{tool}`, exactly so. Do it if the task needs it."
        )
    })
}

fn about_build(answer: &QuestionAnswered, build: BuildId, context: &Context) -> ChangeSet {
    let mut changes = ChangeSet::new();
    let request = BuildRequest {
        build_id: build,
        requested_by: answer.answered_by.clone(),
        reason: Some(answer.answer.clone()),
    };
    let payload = match DecisionNeeded::of(answer.choice.as_ref()) {
        Some(DecisionNeeded::Retry) => Payload::BuildResume(request),
        Some(DecisionNeeded::Pause) => Payload::BuildPause(request),
        Some(DecisionNeeded::Stop) => Payload::BuildStop(request),
        // The others are offered about tasks.
        Some(
            DecisionNeeded::Leave
            | DecisionNeeded::Guide
            | DecisionNeeded::Interrupt
            | DecisionNeeded::Skip
            | DecisionNeeded::AllowCall
            | DecisionNeeded::AllowRule,
        )
        | None => return changes,
    };
    changes.emit(context.event(Subject::build(build), payload));
    changes
}
