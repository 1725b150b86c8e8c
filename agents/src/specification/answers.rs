//! Does what people answered about specifications, and about builds whose mending needs another revision.

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{
    BlindCheck, CoverageBelowThreshold, MultipleFailures, SecurityVulnerability, SpecComplete,
    TaskFailedRepeatedly,
};
use ropewalk_desk::specifications::{self, ApproveError, RequestError};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::{QuestionAnswered, SpecRevisionRefused};
use ropewalk_schemas::question::{About, Content, Question};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{BuildId, Payload, Priority, SpecId, Subject, UserSlug};
use ropewalk_store::ChangeSet;
use tracing::info;

use super::{SpecificationOptions, act, context};

/// How the planner is asked to think about a task that could not be done as planned.
const RETHINK: &str = "It could not be done as it is planned; what was tried stands below. Read the code that it touches. Unless there \
                       is one way that anybody would take, ask me first, as a blocking question, with the ways that you see and what \
                       each costs; ask again while my answer leaves something open. Then hand in the whole plan with this task changed, \
                       split or replaced, and leave the other tasks as they are.";

/// Acts on an answer: approves what a yes approves, asks for the revision that an answer asks for, else goes on with
/// what waited for it.
pub(super) async fn on_answer(
    options: &SpecificationOptions,
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let choice = answer.choice.as_ref();
    match (Trigger::parse(&answer.trigger), &answer.about) {
        (Some(Trigger::SpecComplete), About::Specification { spec }) => {
            match SpecComplete::of(choice) {
                Some(SpecComplete::Start) => approve(answer, *spec, context).await,
                Some(SpecComplete::Revise) => revise(answer, *spec, &answer.answer, context).await,
                Some(SpecComplete::Later) | None => Ok(ChangeSet::new()),
            }
        }
        (Some(Trigger::TaskFailedRepeatedly), About::Task { build, task }) => {
            match TaskFailedRepeatedly::of(choice) {
                Some(TaskFailedRepeatedly::Rethink) => {
                    let what = format!("Think the task `{task}` through with me. {RETHINK}");
                    mend(answer, *build, &what, context).await
                }
                _ => Ok(ChangeSet::new()),
            }
        }
        (Some(trigger), About::Build { build }) => match mending(trigger, answer) {
            Some(what) => mend(answer, *build, what, context).await,
            None => Ok(ChangeSet::new()),
        },
        (_, About::Specification { spec }) => {
            Box::pin(clarified(options, answer, *spec, context)).await
        }
        _ => Ok(ChangeSet::new()),
    }
}

/// Approves the revision that the question has shown, and no other.
async fn approve(
    answer: &QuestionAnswered,
    id: SpecId,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let question = question(answer, context).await?;
    let spec = context.store.get::<Specification>(&id.to_string()).await?;
    let (Some(question), Some(spec)) = (question, spec) else {
        return Ok(changes);
    };
    let Some(Content::Revision { hash, .. }) = question.content else {
        info!(spec.id = %id, "the yes to specification `{id}` names no revision");
        return Ok(changes);
    };
    let by = UserSlug::parse(&answer.answered_by).map_err(AgentError::permanent)?;
    match specifications::add_approval(
        &mut changes,
        context,
        &spec,
        &hash,
        (&by, Priority::DEFAULT),
    )
    .await
    {
        Ok(_) => {
            let reason = specifications::approved_by(&by);
            specifications::close_questions(&mut changes, context, &spec, &reason).await?;
            Ok(changes)
        }
        // Abandoned, approved by somebody else, under revision, or of an earlier one: nothing is left to approve.
        Err(
            error @ (ApproveError::Abandoned(_)
            | ApproveError::Already { .. }
            | ApproveError::PutAway { .. }
            | ApproveError::NotReady { .. }
            | ApproveError::Stale { .. }),
        ) => {
            info!(spec.id = %id, "the yes came too late: {error}");
            Ok(ChangeSet::new())
        }
        // Whoever answered was told that a build would begin.
        Err(error @ ApproveError::Elsewhere { .. }) => {
            let reason = Words::of(&error).to_string();
            Ok(refused(answer, (&spec, &by), reason, context))
        }
        Err(error) => Err(AgentError::transient(Words::of(&error))),
    }
}

/// Goes on with a draft that waited for the answer; a plan that was made without it is made anew with it.
async fn clarified(
    options: &SpecificationOptions,
    answer: &QuestionAnswered,
    id: SpecId,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let alone = act::alone(options, id).await?;
    let spec = context.store.get::<Specification>(&id.to_string()).await?;
    let (Some(spec), Some(question)) = (spec, question(answer, context).await?) else {
        return Ok(ChangeSet::new());
    };
    if spec.state == SpecState::Draft {
        return act::write(options, id, context, &alone).await;
    }
    // The plan stands on the default, or on the answer itself, already.
    let is_default = answer.choice.is_some() && answer.choice == question.default;
    let newest = context::previous(&context.store, &spec).await?;
    if is_default || newest.is_some_and(|plan| plan.answers.contains(&question.id)) {
        return Ok(ChangeSet::new());
    }
    let feedback = format!("{}\nThe answer: {}", question.text, answer.answer);
    revise(answer, id, &feedback, context).await
}

/// Says what a revision is to mend, if that is what was chosen.
fn mending(trigger: Trigger, answer: &QuestionAnswered) -> Option<&'static str> {
    let choice = answer.choice.as_ref();
    match trigger {
        Trigger::MultipleFailures => match MultipleFailures::of(choice)? {
            MultipleFailures::FixAll => Some("Mend everything that is listed here."),
            MultipleFailures::FixCritical => Some("Mend what is listed as critical here."),
            MultipleFailures::Leave => None,
        },
        Trigger::SecurityVulnerability => match SecurityVulnerability::of(choice)? {
            SecurityVulnerability::Fix => Some("Close this hole."),
            SecurityVulnerability::Manual | SecurityVulnerability::Accept => None,
        },
        Trigger::BlindCheck => match BlindCheck::of(choice)? {
            BlindCheck::Fix => Some("Make the tests in the files that are named count again."),
            BlindCheck::Manual | BlindCheck::Accept => None,
        },
        Trigger::CoverageBelowThreshold => match CoverageBelowThreshold::of(choice)? {
            CoverageBelowThreshold::AddTests => Some("Add tests for the areas listed here."),
            CoverageBelowThreshold::Accept => None,
        },
        _ => None,
    }
}

/// Asks for a revision that mends what a question tells of a build; landed work is only changed by another one.
async fn mend(
    answer: &QuestionAnswered,
    build: BuildId,
    what: &str,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let build = context.store.get::<Build>(&build.to_string()).await?;
    let (Some(build), Some(question)) = (build, question(answer, context).await?) else {
        return Ok(ChangeSet::new());
    };
    let feedback = format!("{what}\n\n{}", question.text);
    revise(answer, build.spec, &feedback, context).await
}

async fn revise(
    answer: &QuestionAnswered,
    id: SpecId,
    feedback: &str,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let by = UserSlug::parse(&answer.answered_by).map_err(AgentError::permanent)?;
    let Some(spec) = context.store.get::<Specification>(&id.to_string()).await? else {
        return Ok(changes);
    };
    match specifications::add_revision(&mut changes, context, &spec, &by, feedback).await {
        Ok(reason) => {
            specifications::close_questions(&mut changes, context, &spec, &reason).await?;
            Ok(changes)
        }
        Err(RequestError::Read(error)) => Err(error.into()),
        // Whoever answered was told that this would follow.
        Err(error) => {
            let reason = Words::of(&error).to_string();
            info!(spec.id = %id, "the answer asks for no revision: {reason}");
            Ok(refused(answer, (&spec, &by), reason, context))
        }
    }
}

/// Tells people that what an answer asked for is not begun.
fn refused(
    answer: &QuestionAnswered,
    (spec, by): (&Specification, &UserSlug),
    reason: String,
    context: &Context,
) -> ChangeSet {
    let mut changes = ChangeSet::new();
    changes.emit(context.event(
        Subject::specification(spec.id),
        Payload::SpecRevisionRefused(SpecRevisionRefused {
            spec_id: spec.id,
            idea_slug: spec.idea.clone(),
            requested_by: by.clone(),
            question_id: answer.question_id,
            reason,
        }),
    ));
    changes
}

async fn question(
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<Option<Question>, AgentError> {
    let id = answer.question_id.to_string();
    let question = context.store.get::<Question>(&id).await?;
    Ok(question.map(|question| question.record))
}
