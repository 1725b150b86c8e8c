//! Puts change requests before people, and tells what they answered.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice;
use ropewalk_coordination::ownership::FileRequest;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_orchestrator::{AgentError, Context, questions};
use ropewalk_schemas::payload::{ChangeRequested, QuestionAnswered, Verdict};
use ropewalk_schemas::question::About;
use ropewalk_schemas::task::{ChangeRequestState, TaskState};
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::ChangeSet;

use crate::pm::decide::{self, Claimant};
use crate::pm::{PmOptions, context};

/// Asks a person, unless the file goes to the build that asks by its priority alone.
pub(super) async fn requested(
    options: &PmOptions,
    request: &ChangeRequested,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let store = &context.store;
    let (Some(build), Some(owner)) = (
        context::build(store, request.build_id).await?,
        context::build(store, request.owner).await?,
    ) else {
        return Ok(changes);
    };
    let asks = Claimant {
        build: build.id,
        priority: build.priority,
    };
    let owns = context::owner(store, &request.file).await?;
    if decide::conflict(request.file.as_str(), asks, owns).verdict != Verdict::Deny {
        return Ok(changes);
    }
    let values = BTreeMap::from([
        ("task_id", request.task_id.to_string()),
        ("idea", build.idea.to_string()),
        ("file", request.file.to_string()),
        ("owner", owner.idea.to_string()),
    ]);
    let draft = options.templates.render(Trigger::ChangeRequested, &values);
    let about = About::Task {
        build: build.id,
        task: request.task_id.clone(),
    };
    let asking = QuestionRequest::of(
        draft.map_err(AgentError::permanent)?,
        about,
        Some(&build.idea),
    );
    questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    Ok(changes)
}

/// Tells the build agent what a person said about everything that a waiting task asked of owners.
pub(super) async fn answered(
    answer: &QuestionAnswered,
    (build, task): (BuildId, &TaskId),
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let approved = match choice::ChangeRequested::of(answer.choice.as_ref()) {
        Some(choice::ChangeRequested::GoOn) => true,
        Some(choice::ChangeRequested::Refuse) => false,
        Some(choice::ChangeRequested::Wait) | None => return Ok(changes),
    };
    let Some(row) = context::task(&context.store, build, task).await? else {
        return Ok(changes);
    };
    if row.state != TaskState::Waiting {
        return Ok(changes);
    }
    let reason = format!("`{}` answered `{}`", answer.answered_by, answer.answer);
    for open in &row.change_requests {
        if open.state == ChangeRequestState::Requested {
            let request = FileRequest {
                build,
                task: task.clone(),
                owner: open.owner,
                file: open.file.clone(),
            };
            request.answer(&mut changes, approved, &reason, &|subject, payload| {
                context.event(subject, payload)
            });
        }
    }
    Ok(changes)
}
