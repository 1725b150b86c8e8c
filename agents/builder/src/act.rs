//! Handles events: says what changes, and wakes the workers, who do the long work.

mod abandon;
mod amend;
pub(super) mod answers;
mod approve;
pub(super) mod control;
mod files;
mod reviewed;
mod wishes;

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::payload::Verdict;
use ropewalk_schemas::{Event, Payload};
use ropewalk_store::ChangeSet;
use tracing::info;

use super::SharedState;
use super::error::BuilderError;
use super::machine::task::Input;

/// Handles one event.
pub(crate) async fn handle(
    shared: &SharedState,
    event: &Event,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    match changes(shared, event, context).await {
        Err(BuilderError::Illegal(refused)) if !is_wish(&event.payload) => {
            info!(event.id = %event.id, "`{}` came too late: {refused}", event.event_type());
            Ok(ChangeSet::new())
        }
        changes => Ok(changes?),
    }
}

/// Returns whether somebody who waits for it wants something: a refusal must reach them. All else speaks of how things
/// were, and they may have moved on by other ways.
const fn is_wish(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::BuildPause(_)
            | Payload::BuildResume(_)
            | Payload::BuildStop(_)
            | Payload::BuildPriority(_)
            | Payload::BuildTell(_)
            | Payload::TaskRetry(_)
    )
}

async fn changes(
    shared: &SharedState,
    event: &Event,
    context: &Context,
) -> Result<ChangeSet, BuilderError> {
    match &event.payload {
        Payload::SpecApproved(approval) => approve::approved(shared, context, approval).await,
        Payload::BuildPause(request) => control::pause(shared, context, request).await,
        Payload::BuildResume(request) => control::resume(shared, context, request).await,
        Payload::BuildStop(request) => control::stop(shared, context, request).await,
        Payload::BuildPriority(wish) => control::rank(shared, context, wish).await,
        Payload::BuildTell(word) => {
            let about = (word.build_id, &word.task_id);
            let input = Input::Advise(word.text.clone());
            control::apply(shared, context, about, input, None).await
        }
        Payload::IdeaAbandoned(given_up) => abandon::abandoned(shared, context, given_up).await,
        Payload::BuildMerged(merge) => files::merged(shared, context, merge).await,
        Payload::TaskRetry(retry) => {
            let guidance = retry.guidance.clone();
            let about = (retry.build_id, &retry.task_id);
            control::retry(shared, context, about, guidance, retry.may_resume).await
        }
        Payload::LockRevoked(lost) => control::revoked(shared, context, lost).await,
        Payload::WorkAssigned(assignment) => control::assign(shared, context, assignment).await,
        Payload::ReviewCompleted(review) => reviewed::reviewed(shared, context, review).await,
        Payload::QuestionAnswered(answer) | Payload::QuestionDefaulted(answer) => {
            answers::answered(shared, context, answer).await
        }
        Payload::DecisionMade(decision) => {
            let (build, task, reason) = (
                decision.build_id,
                decision.task_id.as_ref(),
                &decision.reason,
            );
            match (decision.verdict, task, &decision.file) {
                (Verdict::Skip, Some(task), _) => {
                    let by = decision.decided_by.as_deref().unwrap_or("pm");
                    control::skip(shared, context, build, task, by, reason).await
                }
                (Verdict::Retry, Some(task), _) => {
                    control::retry(shared, context, (build, task), None, false).await
                }
                (Verdict::Interrupt, Some(task), _) => {
                    let input = Input::Suspend {
                        why: reason.clone(),
                    };
                    control::apply(shared, context, (build, task), input, None).await
                }
                (Verdict::Grant | Verdict::Preempt, Some(task), Some(file)) => {
                    files::hand_over(shared, context, build, task, file, reason).await
                }
                // A file that stays with its owner is waited for, as the task does already; only a refused
                // change request blocks it.
                _ => Ok(ChangeSet::new()),
            }
        }
        Payload::ChangeDecided(decision) => files::decided(shared, context, decision).await,
        // The rest only wakes the workers.
        _ => Ok(ChangeSet::new()),
    }
}
