//! Writes a specification and says what changes.

mod drafting;
mod revision;

use ropewalk_desk::specifications::{self, RequestError};
use ropewalk_orchestrator::questions::{self, AskOutcome};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::clip;
use ropewalk_schemas::document::spec_md::{self, SpecHeader};
use ropewalk_schemas::payload::{IdeationCompleted, SpecApproved, SpecRejected};
use ropewalk_schemas::question::About;
use ropewalk_schemas::specification::{Complexity, Specification};
use ropewalk_schemas::{Payload, SpecId, Subject};
use ropewalk_store::{ChangeSet, Versioned};
use ropewalk_workspace::FileLock;

use drafting::Draft;

use super::SpecificationOptions;
use super::context::{self, LoadOutcome, Material};
use super::submission::ModelSubmission;
use crate::failure;
use crate::idea_folder::{IdeaFolder, SPEC};
use crate::model_question::ModelQuestion;

/// Writes the next revision of a specification that is asked for.
pub(super) async fn requested(
    options: &SpecificationOptions,
    id: SpecId,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let alone = alone(options, id).await?;
    write(options, id, context, &alone).await
}

/// Says in spec.md that its revision is approved: it was written before anybody had read it. What is there of another
/// revision, or cannot be read, stays.
pub(super) async fn approved(
    options: &SpecificationOptions,
    approved: &SpecApproved,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let _alone = alone(options, approved.spec_id).await?;
    let key = approved.spec_id.to_string();
    let Some(spec) = context.store.get::<Specification>(&key).await? else {
        return Ok(ChangeSet::new());
    };
    let folder = IdeaFolder::new(options.places.idea_folder(&spec.user, &spec.idea));
    let text = folder.read(SPEC).ok().flatten().unwrap_or_default();
    let is_it = |found: &SpecHeader| found.hash.as_ref() == Some(&approved.hash);
    if spec_md::header(&text).is_ok_and(|found| is_it(&found)) {
        let header = SpecHeader::approved(&spec, approved.revision, &approved.hash);
        let text = spec_md::reheaded(&text, &header).map_err(AgentError::permanent)?;
        let written = folder.write(SPEC, &text);
        written.map_err(|error| failure::of_folder(&error))?;
    }
    Ok(ChangeSet::new())
}

/// Waits until nobody writes the specification `id`, in any process: two who write it at once pay for the same call.
pub(super) async fn alone(
    options: &SpecificationOptions,
    id: SpecId,
) -> Result<FileLock, AgentError> {
    let places = &options.places;
    std::fs::create_dir_all(places.specification_locks()).map_err(AgentError::transient)?;
    FileLock::wait(&places.specification_lock(id))
        .await
        .map_err(|error| failure::of_repository(&error))
}

/// Writes the next revision of a specification that is a draft; any other stays as it is.
pub(super) async fn write(
    options: &SpecificationOptions,
    id: SpecId,
    context: &Context,
    _alone: &FileLock,
) -> Result<ChangeSet, AgentError> {
    let material = match context::load(options, id, context).await? {
        LoadOutcome::Nothing => return Ok(ChangeSet::new()),
        LoadOutcome::Missing(spec, absent) => {
            return Ok(refuse(context, &spec, &missing(&spec, &absent)));
        }
        LoadOutcome::Ready(material) => material,
    };
    match drafting::draft(options, context, &material).await? {
        Draft::Submitted(ModelSubmission::Question(question)) => {
            ask_first(options, context, &material, question).await
        }
        Draft::Submitted(ModelSubmission::Plan(plan)) => {
            revision::generate(options, context, &material, *plan).await
        }
        Draft::Refused(reason) => Ok(refuse(context, &material.spec, &reason)),
        Draft::Withdrawn => Ok(ChangeSet::new()),
    }
}

/// Asks for the specification of an idea whose ideation is complete, unless somebody has asked for it already.
pub(super) async fn on_ideation_completed(
    options: &SpecificationOptions,
    completed: &IdeationCompleted,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    if !options.auto_generate || !completed.ready_for_spec {
        return Ok(changes);
    }
    let (idea, by) = (&completed.idea_slug, &completed.user_slug);
    match specifications::add_request(&mut changes, context, idea, by, Complexity::Medium).await {
        Ok(_) => Ok(changes),
        Err(
            RequestError::OnItsWay { .. }
            | RequestError::Landed { .. }
            | RequestError::Built { .. }
            | RequestError::Abandoned(_),
        ) => Ok(ChangeSet::new()),
        Err(RequestError::Read(error)) => Err(error.into()),
        Err(error) => Err(AgentError::permanent(Words::of(&error))),
    }
}

fn missing(spec: &Specification, absent: &[&str]) -> String {
    let (documents, idea) = (absent.join(" and "), &spec.idea);
    let them = if absent.len() == 1 { "it" } else { "them" };
    format!(
        "a specification needs {documents}; `ropewalk idea done {idea}` has {them} written of what was said so far, \
         `ropewalk idea chat {idea}` says more, or write {them} yourself"
    )
}

/// Says that the specification cannot be made, and why.
fn refuse(context: &Context, spec: &Versioned<Specification>, reason: &str) -> ChangeSet {
    let mut changes = ChangeSet::new();
    let reason = clip::letters(reason, 4_000).into_owned();
    changes.update(
        spec,
        &Specification {
            reason: Some(reason.clone()),
            updated_at: context.now(),
            ..spec.once_rejected()
        },
    );
    changes.emit(context.event(
        Subject::specification(spec.id),
        Payload::SpecRejected(SpecRejected {
            spec_id: spec.id,
            idea_slug: spec.idea.clone(),
            rejected_by: context.source().to_string(),
            reason,
        }),
    ));
    changes
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts a question that has to be answered before there can be a plan; the draft waits for the answer.
async fn ask_first(
    options: &SpecificationOptions,
    context: &Context,
    material: &Material,
    question: ModelQuestion,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let spec = &material.spec;
    let asking = question.asking(About::Specification { spec: spec.id }, &spec.idea);
    match questions::ask(&mut changes, context, &options.deadlines, asking).await? {
        AskOutcome::Open(_) => {
            changes.update(
                spec,
                &Specification {
                    updated_at: context.now(),
                    ..spec.record.clone()
                },
            );
            Ok(changes)
        }
        // The answer was in what the model read; to ask again would go on for ever.
        AskOutcome::Reused(answer) => {
            let reason = format!(
                "the model asks again what was answered with `{}`",
                answer.text
            );
            Ok(refuse(context, spec, &reason))
        }
    }
}
