//! Puts change requests before people, and tells what they answered.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice;
use ropewalk_coordination::ownership::FileRequest;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_orchestrator::{AgentError, Context, questions};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::{ChangeRequested, QuestionAnswered, Verdict};
use ropewalk_schemas::question::About;
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState};
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use ropewalk_store::ChangeSet;

use crate::pm::decide::{self, Claimant};
use crate::pm::{PmOptions, context};

/// Asks a person about everything that the task asks of owners, unless it goes to the build that asks by its priority alone.
pub(super) async fn requested(
    options: &PmOptions,
    request: &ChangeRequested,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let (store, of) = (&context.store, (request.build_id, &request.task_id));
    let (Some(build), Some(task)) = (
        context::build(store, request.build_id).await?,
        context::task(store, request.build_id, &request.task_id).await?,
    ) else {
        return Ok(changes);
    };
    let files = files(&build, &task, context).await?;
    if files.is_empty() {
        return Ok(changes);
    }
    let told: Vec<String> = files.iter().map(OwnedFile::told).collect();
    let values = BTreeMap::from([
        ("task_id", request.task_id.to_string()),
        ("branch", build.branch.clone()),
        ("files", told.join("\n")),
    ]);
    let draft = options.templates.render(Trigger::ChangeRequested, &values);
    let mut draft = draft.map_err(AgentError::permanent)?;
    if files.iter().any(|file| file.owner.rests()) {
        // Who waits for what does not go on by itself may wait for good.
        draft.recommend(None);
    }
    let about = About::Task {
        build: build.id,
        task: request.task_id.clone(),
    };
    let asking = QuestionRequest::of(draft, about, Some(&build.idea));
    // One that names other files is no longer the question.
    if let Some(asked) = context::open_question(store, Trigger::ChangeRequested, of).await?
        && asked.text != asking.text
    {
        questions::supersede(
            &mut changes,
            context,
            &asked,
            "what the task asks for has changed",
        );
    }
    questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    Ok(changes)
}

/// A file that a task asks for, and the build that owns it.
struct OwnedFile {
    file: RepoPath,
    owner: Build,
}

impl OwnedFile {
    /// Names it with the branch of its owner, and says how that stands where it does not go on by itself.
    fn told(&self) -> String {
        let Self { file, owner } = self;
        let rests = if owner.rests() {
            format!(", whose build is {}", owner.state)
        } else {
            String::new()
        };
        format!("• `{file}`, of `{}`{rests}", owner.branch)
    }
}

/// Lists what a person decides about: each file that a task asks for, with the build that owns it.
async fn files(
    build: &Build,
    task: &Task,
    context: &Context,
) -> Result<Vec<OwnedFile>, AgentError> {
    let store = &context.store;
    let asks = Claimant {
        build: build.id,
        priority: build.priority,
    };
    let open = task.change_requests.iter();
    let open = open.filter(|open| open.state == ChangeRequestState::Requested);
    let mut files = Vec::new();
    for open in open {
        let Some(owner) = context::build(store, open.owner).await? else {
            continue;
        };
        let owns = context::owner(store, &open.file).await?;
        if decide::conflict(open.file.as_str(), asks, owns).verdict == Verdict::Deny {
            files.push(OwnedFile {
                file: open.file.clone(),
                owner: owner.into_inner(),
            });
        }
    }
    Ok(files)
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
