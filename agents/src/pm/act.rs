//! Says what changes: decisions, assignments and questions.

mod answers;
mod change;
mod conflict;
mod deadlock;
mod decision;
mod orphans;
mod provider;
mod stuck;

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::DecisionMade;
use ropewalk_schemas::{Event, Payload, Subject};
use ropewalk_store::ChangeSet;

use super::PmOptions;

/// Handles one event.
pub(super) async fn handle(
    options: &PmOptions,
    event: &Event,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    match &event.payload {
        Payload::StuckTask(alert) => stuck::raised(options, alert, context).await,
        Payload::StuckTaskCleared(alert) => stuck::cleared(&alert.cause, context).await,
        Payload::ScheduleDue(due) if due.name == super::STUCK => {
            stuck::due(options, &due.target, context).await
        }
        Payload::ConflictDetected(detected) => conflict::detected(detected, context).await,
        Payload::ChangeRequested(request) => change::requested(options, request, context).await,
        Payload::ComponentDown(alert) => orphans::divided(options, &alert.component, context).await,
        Payload::ProviderDown(alert) => provider::away(options, alert, context).await,
        Payload::ProviderDownCleared(alert) => provider::back(&alert.cause, context).await,
        Payload::DeadlockDetected(alert) if !alert.resolved => {
            deadlock::found(alert, context).await
        }
        Payload::DecisionRequested(request) => decision::requested(options, request, context).await,
        Payload::BuildCompleted(ended) => decision::build_ended(options, ended, context).await,
        Payload::QuestionAnswered(answer) | Payload::QuestionDefaulted(answer) => {
            answers::answered(options, answer, context).await
        }
        _ => Ok(ChangeSet::new()),
    }
}

/// Tells the build agent what was decided, of the task that it concerns, or of the whole build.
fn decided(changes: &mut ChangeSet, context: &Context, decision: DecisionMade) {
    let build = decision.build_id;
    let subject = match &decision.task_id {
        Some(task) => Subject::task(build, task),
        None => Subject::build(build),
    };
    changes.emit(context.event(subject, Payload::DecisionMade(decision)));
}

/// Returns the context in which events belong to the chain of `build`.
fn of_build(context: &Context, build: &Build) -> Context {
    context.for_claim(build.correlation_id, build.priority)
}
