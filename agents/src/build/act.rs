//! Handles events: says what changes, and wakes the workers, who do the long work.

mod amend;
mod answers;
mod approve;
pub(super) mod control;
mod files;
mod wishes;

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::payload::Verdict;
use ropewalk_schemas::{Event, Payload};
use ropewalk_store::ChangeSet;

use super::Shop;
use super::trouble::Trouble;

/// Handles one event.
pub(crate) async fn handle(
    shop: &Shop,
    event: &Event,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let changes = changes(shop, event, context).await?;
    shop.signals.ring_steward();
    shop.signals.ring_loops();
    Ok(changes)
}

async fn changes(shop: &Shop, event: &Event, context: &Context) -> Result<ChangeSet, Trouble> {
    match &event.payload {
        Payload::SpecApproved(approval) => {
            approve::approved(shop, context, approval, event.priority).await
        }
        Payload::BuildPause(request) => control::pause(context, request).await,
        Payload::BuildResume(request) => control::resume(context, request).await,
        Payload::BuildStop(request) => control::stop(shop, context, request).await,
        Payload::BuildMerged(merge) => files::merged(context, merge).await,
        Payload::TaskRetry(retry) => {
            let guidance = retry.guidance.clone();
            control::retry(shop, context, retry.build_id, &retry.task_id, guidance).await
        }
        Payload::LockRevoked(lost) => control::revoked(shop, context, lost).await,
        Payload::WorkAssigned(assignment) => control::assign(context, assignment).await,
        Payload::QuestionAnswered(answer) | Payload::QuestionDefaulted(answer) => {
            answers::answered(shop, context, answer).await
        }
        Payload::DecisionMade(decision) => {
            let (build, task, reason) = (
                decision.build_id,
                decision.task_id.as_ref(),
                &decision.reason,
            );
            match (decision.verdict, task, &decision.file) {
                (Verdict::Skip, Some(task), _) => {
                    control::skip(shop, context, build, task, "pm", reason).await
                }
                (Verdict::Retry, Some(task), _) => {
                    control::retry(shop, context, build, task, None).await
                }
                (Verdict::Interrupt, Some(task), _) => {
                    control::interrupt(shop, context, build, task, reason).await
                }
                (Verdict::Grant | Verdict::Preempt, Some(task), Some(file)) => {
                    files::hand_over(shop, context, build, task, file, reason).await
                }
                // A file that stays with its owner is waited for, as the task does already; only a refused
                // change request blocks it.
                _ => Ok(ChangeSet::new()),
            }
        }
        Payload::ChangeDecided(decision) => files::decided(shop, context, decision).await,
        // The rest only wakes the workers.
        _ => Ok(ChangeSet::new()),
    }
}
