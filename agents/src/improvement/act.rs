//! Writes reviews and moves lessons along their life.

mod failure;
mod ledger;
mod lessons;
mod other;
mod preference;
mod rejection;
mod review;
mod weekly;

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::payload::ReviewCompleted;
use ropewalk_schemas::review::Review;
use ropewalk_schemas::{Event, Payload, Subject};
use ropewalk_store::ChangeSet;

use super::{ImprovementOptions, WEEKLY};

/// Handles one event.
pub(super) async fn handle(
    options: &ImprovementOptions,
    event: &Event,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    match &event.payload {
        Payload::BuildCompleted(ended) => review::build(options, ended.build_id, context).await,
        Payload::IdeationCompleted(ended) => other::ideation(ended, context).await,
        Payload::SpecGenerated(made) => other::specification(made, context).await,
        Payload::SpecRejected(rejected) => {
            rejection::rejected(rejected, &event.source, context).await
        }
        Payload::TaskFailed(failed) => {
            let about = (failed.build_id, &failed.task_id);
            failure::ended(about, failed.will_retry, context).await
        }
        Payload::TaskSkipped(skipped) => {
            failure::ended((skipped.build_id, &skipped.task_id), false, context).await
        }
        Payload::TaskCompleted(landed) if landed.attempts > 1 => {
            failure::ended((landed.build_id, &landed.task_id), false, context).await
        }
        Payload::ScheduleDue(due) if due.name == WEEKLY => weekly::summary(options, context).await,
        Payload::QuestionAnswered(answer) => {
            let mut changes = lessons::answered(answer, context).await?;
            changes.merge(preference::answered(answer, context).await?);
            Ok(changes)
        }
        Payload::QuestionDefaulted(answer) => lessons::answered(answer, context).await,
        _ => Ok(ChangeSet::new()),
    }
}

/// Writes a review and tells of it.
fn completed(
    changes: &mut ChangeSet,
    context: &Context,
    subject: Subject,
    review: &Review,
    improvements: usize,
) {
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    changes.insert(review);
    changes.emit(context.event(
        subject,
        Payload::ReviewCompleted(ReviewCompleted {
            review_id: review.id,
            kind: review.kind,
            idea_slug: review.idea.clone(),
            patterns_found: count(review.patterns.len()),
            gotchas_found: count(review.gotchas.len()),
            improvements_made: count(improvements),
            requirements_missed: count(review.missed()),
            deviations: count(review.deviations()),
        }),
    ));
}
