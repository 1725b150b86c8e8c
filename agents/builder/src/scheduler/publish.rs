//! Lets the user's branch follow the head that SQL owns.

use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::decide::{Verdict, verdict};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{ChangeSet, Versioned, retry_on_conflict};
use ropewalk_workspace::{Publication, PublishError};
use tracing::warn;

use super::work::Work;
use crate::SharedState;
use crate::ask;
use crate::context::{self, builds_in, of_build};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::Input;

/// Moves the branch to the head by compare-and-swap; a branch that somebody else moved, or that the
/// repository does not take, holds the build and asks.
pub(crate) async fn publish(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, build, {
        let Some(build) = context::build(&context.store, build).await? else {
            return Ok(Some(()));
        };
        let Some(head) = build.head.clone() else {
            return Ok(Some(()));
        };
        if build.published.as_ref() == Some(&head)
            || is_contested(&build)
            || is_deadly(context, build.id)
        {
            return Ok(Some(()));
        }
        let before = build.published.as_ref();
        failpoint!("build.publish.before");
        let publication = shared.clone.publish(&build.branch, &head, before).await;
        failpoint!("build.publish.after");
        let against = match publication {
            Ok(Publication::Published | Publication::AlreadyThere) => {
                follow(context, &build, head).await?;
                return Ok(Some(()));
            }
            Ok(Publication::MovedByOther {
                actual: Some(actual),
            }) if is_ours(shared, &build, &head, &actual).await? => {
                // A crash came between the ref and SQL, or another loop was faster.
                follow(context, &build, actual).await?;
                return Ok(None);
            }
            Ok(Publication::MovedByOther { actual }) => Against::Moved(actual),
            Err(refusal) if is_for_people(&build, &refusal) => Against::Refused(refusal),
            Err(error) => return Err(error.into()),
        };
        hold(shared, context, &build, &against).await?;
        Ok(Some(()))
    })
}

/// Lists the builds whose branches do not follow their heads, though nobody is asked about that.
pub(super) async fn unpublished(context: &Context) -> Result<Vec<BuildId>, BuilderError> {
    let asked = [Trigger::BranchMoved, Trigger::BranchRefused].map(Trigger::as_str);
    let mut unpublished = Vec::new();
    for build in builds_in(&context.store, BuildState::ALL).await? {
        if build.head == build.published {
            continue;
        }
        let open = ask::open_questions(context, build.id).await?;
        if !open.iter().any(|one| asked.contains(&&*one.trigger)) {
            unpublished.push(build.id);
        }
    }
    Ok(unpublished)
}

/// What keeps a branch from following the head.
pub(crate) enum Against {
    /// Somebody else moved it; it is there now, if it is.
    Moved(Option<CommitId>),
    /// The repository does not take it.
    Refused(PublishError),
    /// The program died of it too often, for people.
    Deadly(String),
}

/// Says that a branch does not follow by trying again. A checkout of the branch is left to the person who looks at it,
/// until nothing else is left to do.
fn is_for_people(build: &Build, refusal: &PublishError) -> bool {
    match refusal {
        PublishError::Refused { .. } | PublishError::Rewrites { .. } => {
            build.state != BuildState::Stopped
        }
        PublishError::CheckedOut(_)
        | PublishError::Dirty { .. }
        | PublishError::Filtered { .. } => build.state == BuildState::Verifying,
        // Both pass by themselves.
        PublishError::Locked(_) | PublishError::Git(_) => false,
    }
}

/// A build that already asks what to do about its branch publishes nothing meanwhile.
fn is_contested(build: &Build) -> bool {
    build.state == BuildState::Paused && build.pause_reason == Some(PauseReason::Conflict)
}

/// What ended the program too often is not tried again before a person said so.
fn is_deadly(context: &Context, build: BuildId) -> bool {
    let suspect = Work::Publication.suspect(build);
    let deaths = context.registry.suspects().deaths(&suspect);
    deaths.is_some_and(|deaths| verdict(deaths.count) == Verdict::Parked)
}

/// Writes down where the branch is, whatever else about the build changed during the push.
async fn follow(context: &Context, before: &Build, at: CommitId) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, before.id, {
        let build = context::build(&context.store, before.id).await?;
        // Another loop was faster.
        if let Some(build) = build.filter(|build| build.published == before.published) {
            let after = Build {
                published: Some(at.clone()),
                ..build.record.clone()
            };
            let mut changes = ChangeSet::new();
            changes.update(&build, &after);
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

/// A branch between what was published and the head was moved by this program itself.
async fn is_ours(
    shared: &SharedState,
    build: &Build,
    head: &CommitId,
    actual: &CommitId,
) -> Result<bool, BuilderError> {
    // A commit of somebody else may not even be in the local clone.
    if shared.clone.resolve(actual.as_str()).await?.is_none() {
        return Ok(false);
    }
    let from = build.published.as_ref().or(build.base.as_ref());
    let after_ours = match from {
        Some(from) => from != actual && shared.clone.is_ancestor(from, actual).await?,
        None => false,
    };
    Ok(after_ours && shared.clone.is_ancestor(actual, head).await?)
}

/// Holds a build whose branch does not follow its head, and asks how to go on.
pub(crate) async fn hold(
    shared: &SharedState,
    context: &Context,
    build: &Versioned<Build>,
    against: &Against,
) -> Result<(), BuilderError> {
    let mut changes = ChangeSet::new();
    let after = contested(shared, context, &mut changes, build, against).await?;
    if after != build.record {
        changes.update(build, &after);
        context.store.commit(changes).await?;
    }
    Ok(())
}

/// Says what becomes of a build whose branch does not follow its head, and asks how to go on.
pub(super) async fn contested(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    against: &Against,
) -> Result<Build, BuilderError> {
    let context = of_build(context, build);
    let detail = match against {
        Against::Moved(_) => format!("somebody else moved `{}`", build.branch),
        Against::Refused(refusal) => Words::of(refusal).to_string(),
        Against::Deadly(told) => told.clone(),
    };
    warn!(build.id = %build.id, "{detail}");
    let scene = Scene::new(shared, &context, build);
    let input = Input::Contest {
        detail: detail.clone(),
    };
    let after = scene.build(changes, input).await?;
    match against {
        Against::Moved(actual) => {
            ask::branch_moved(shared, &context, changes, &after, actual.as_ref()).await
        }
        Against::Refused(_) | Against::Deadly(_) => {
            let trigger = Trigger::BranchRefused;
            ask::held(shared, &context, changes, &after, trigger, detail).await
        }
    }
}
