//! Begins a build of exactly what was approved.

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::task::{Task, TaskBlock};
use ropewalk_schemas::{BuildId, document};
use ropewalk_store::{ChangeSet, Query, revision_key};
use tracing::info;

use super::amend;
use crate::SharedState;
use crate::error::BuilderError;

/// Lays down the build and its tasks; a second approval of the same revision begins nothing, and that of a later one
/// goes on from what the earlier one built.
pub(super) async fn approved(
    shared: &SharedState,
    context: &Context,
    approval: &SpecApproved,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let query = Query::new()
        .equal("spec", approval.spec_id.to_string())
        .order_by("created_at");
    let earlier = context.store.list::<Build>(query).await?;
    if earlier
        .iter()
        .any(|build| build.revision >= approval.revision)
    {
        info!(spec.id = %approval.spec_id, "`{}` is built already", approval.spec_id);
        return Ok(changes);
    }
    let idea = context
        .store
        .get::<Idea>(approval.idea_slug.as_str())
        .await?;
    if idea.is_some_and(|idea| idea.state == IdeaState::Abandoned) {
        info!(spec.id = %approval.spec_id, "the idea of `{}` was abandoned", approval.spec_id);
        return Ok(changes);
    }
    let revision = approved_revision(context, approval).await?;
    let mut build = build(context, approval);
    amend::take_over(
        shared,
        context,
        &mut changes,
        &earlier,
        &mut build,
        &revision,
    )
    .await?;
    changes.insert(&build);
    for (position, block) in revision.tasks.into_iter().enumerate() {
        changes.insert(&task(build.id, position, block));
    }
    Ok(changes)
}

/// Loads the approved revision; anything but exactly what was shown is refused for good.
async fn approved_revision(
    context: &Context,
    approval: &SpecApproved,
) -> Result<Revision, BuilderError> {
    let key = revision_key(approval.spec_id, approval.revision);
    let Some(revision) = context.store.get::<Revision>(&key).await? else {
        let (spec, number) = (approval.spec_id, approval.revision);
        let missing = format!("there is no revision {number} of specification `{spec}`");
        return Err(AgentError::permanent(missing).into());
    };
    let hash = document::hash(&revision.document, &revision.tasks);
    if hash != approval.hash || revision.hash != approval.hash {
        let spec = approval.spec_id;
        let other = format!(
            "specification `{spec}` is not what was approved: it has hash `{hash}`, approved was `{}`; \
             approve the hash that is shown now",
            approval.hash
        );
        return Err(AgentError::permanent(other).into());
    }
    if revision.tasks.is_empty() {
        let empty = format!(
            "specification `{}` has no tasks; ask for a revision",
            approval.spec_id
        );
        return Err(AgentError::permanent(empty).into());
    }
    Ok(revision.into_inner())
}

fn build(context: &Context, approval: &SpecApproved) -> Build {
    Build {
        cause: context.cause(),
        ..Build::queued(
            BuildId(context.ids.next()),
            approval,
            context.correlation(),
            context.now(),
        )
    }
}

fn task(build: BuildId, position: usize, block: TaskBlock) -> Task {
    let number = u32::try_from(position + 1).unwrap_or(u32::MAX);
    Task {
        reason: Some("waits for the build to begin".to_owned()),
        ..Task::planned(build, number, block)
    }
}
