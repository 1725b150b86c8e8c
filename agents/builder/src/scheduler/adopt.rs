//! Says what a build comes to that goes on upon what somebody else put on its branch.

use crate::context;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::CommitId;
use ropewalk_schemas::build::Build;
use ropewalk_workspace::{CommitMessage, Merge, Side};

use crate::SharedState;
use crate::error::BuilderError;

/// A build upon what somebody else put on its branch.
pub(crate) struct Adoption {
    /// What the build goes on from.
    pub(crate) head: CommitId,
    /// Where its branch is.
    pub(crate) branch: CommitId,
}

/// Joins what landed with where somebody moved the branch of a build to; none where that takes back what was
/// published, or where the two do not go together. Nothing but objects is written.
pub(crate) async fn adopted(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<Option<Adoption>, BuilderError> {
    let clone = &shared.clone;
    clone.fetch().await?;
    let published = build.published.as_ref().or(build.base.as_ref());
    let (Some(branch), Some(head), Some(published)) = (
        clone.user_branch(&build.branch).await?,
        &build.head,
        published,
    ) else {
        return Ok(None);
    };
    if !clone.is_ancestor(published, &branch).await? {
        return Ok(None);
    }
    let message = CommitMessage::new(format!("Join what was put on {}", build.branch))
        .with_trailer("Ropewalk-Execution", build.id.to_string());
    let notes = context::notes(build, Side::Head);
    let joined = clone
        .merge(head, &branch, &notes, &message, context.now())
        .await?;
    let head = match joined {
        Merge::Contained => branch.clone(),
        Merge::FastForward => head.clone(),
        // Only a build that goes on checks the whole once more.
        Merge::Merged(_) if build.state.has_ended() => return Ok(None),
        Merge::Merged(commit) => commit,
        Merge::Conflict(_) => return Ok(None),
    };
    Ok(Some(Adoption { head, branch }))
}
