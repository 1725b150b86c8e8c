//! Hears what people wish about what they were only told: the build goes on without their answer.

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{MilestoneReached, TaskComplexityExceeded};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::payload::{BuildRequest, QuestionAnswered};
use ropewalk_schemas::question::About;
use ropewalk_store::ChangeSet;

use super::control;
use crate::SharedState;
use crate::error::BuilderError;
use crate::machine::task::Input;

/// What the next attempt is told of a task that is to be done in a simpler way.
const SIMPLER: &str = "This takes far longer than planned. A person asks for a simpler approach.";

/// Does what a person wishes.
pub(super) async fn heard(
    shared: &SharedState,
    context: &Context,
    trigger: Trigger,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let choice = answer.choice.as_ref();
    let by = &answer.answered_by;
    match (trigger, &answer.about) {
        (Trigger::MilestoneReached, About::Build { build }) => match MilestoneReached::of(choice) {
            Some(MilestoneReached::Pause) => pause(shared, context, *build, by).await,
            Some(MilestoneReached::KeepGoing) | None => Ok(ChangeSet::new()),
        },
        (Trigger::TaskComplexityExceeded, About::Task { build, task }) => {
            match TaskComplexityExceeded::of(choice) {
                Some(TaskComplexityExceeded::Pause) => pause(shared, context, *build, by).await,
                Some(TaskComplexityExceeded::Skip) => {
                    let reason = answer.why().unwrap_or("it takes longer than planned");
                    control::skip(shared, context, *build, task, by, reason).await
                }
                Some(TaskComplexityExceeded::Simplify) => {
                    let input = Input::Advise(SIMPLER.to_owned());
                    control::apply(shared, context, (*build, task), input, None).await
                }
                Some(TaskComplexityExceeded::Continue) | None => Ok(ChangeSet::new()),
            }
        }
        _ => Ok(ChangeSet::new()),
    }
}

async fn pause(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    by: &str,
) -> Result<ChangeSet, BuilderError> {
    let request = BuildRequest {
        build_id: build,
        requested_by: by.to_owned(),
        reason: None,
    };
    control::pause(shared, context, &request).await
}
