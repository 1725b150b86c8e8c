//! Lets the user's branch follow the head that SQL owns.

use ropewalk_orchestrator::Context;
use ropewalk_runtime::failpoint;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::payload::BuildPaused;
use ropewalk_schemas::{BuildId, CommitId, Payload, Subject};
use ropewalk_store::{ChangeSet, Versioned};
use ropewalk_workspace::Publication;
use tracing::warn;

use super::Shop;
use super::ask;
use super::attempt::committed;
use super::context::{self, CONFLICTS, of_build};
use super::settle::enter;
use super::trouble::Trouble;

/// Moves the branch to the head by compare-and-swap; a branch that somebody else moved holds the build and asks.
pub(crate) async fn publish(shop: &Shop, context: &Context, build: BuildId) -> Result<(), Trouble> {
    for _ in 0..CONFLICTS {
        let Some(build) = context::build(&context.store, build).await? else {
            return Ok(());
        };
        let Some(head) = build.head.clone() else {
            return Ok(());
        };
        if build.published.as_ref() == Some(&head) || is_contested(&build) {
            return Ok(());
        }
        let before = build.published.as_ref();
        failpoint!("build.publish.before");
        let publication = shop.clone.publish(&build.branch, &head, before).await?;
        failpoint!("build.publish.after");
        let moved = match publication {
            Publication::Published | Publication::AlreadyThere => None,
            Publication::MovedByOther { actual } => Some(actual),
        };
        let done = match moved {
            None => {
                follow(context, &build, head).await?;
                true
            }
            Some(Some(actual)) if is_ours(shop, &build, &head, &actual).await? => {
                // A crash came between the ref and SQL, or another loop was faster.
                follow(context, &build, actual).await?;
                false
            }
            Some(actual) => hold(shop, context, &build, actual.as_ref()).await?,
        };
        if done {
            return Ok(());
        }
    }
    Err(Trouble::Contended(format!("build/{build}")))
}

/// A build that already asks what to do about its branch publishes nothing meanwhile.
fn is_contested(build: &Build) -> bool {
    build.state == BuildState::Paused && build.pause_reason == Some(PauseReason::Conflict)
}

/// Writes down where the branch is, whatever else about the build changed during the push.
async fn follow(context: &Context, before: &Build, at: CommitId) -> Result<(), Trouble> {
    for _ in 0..CONFLICTS {
        let Some(build) = context::build(&context.store, before.id).await? else {
            return Ok(());
        };
        // Another loop was faster.
        if build.published != before.published {
            return Ok(());
        }
        let after = Build {
            published: Some(at.clone()),
            ..build.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&build, &after);
        if committed(context, changes).await? {
            return Ok(());
        }
    }
    Err(Trouble::Contended(format!("build/{}", before.id)))
}

/// A branch between what was published and the head was moved by this program itself.
async fn is_ours(
    shop: &Shop,
    build: &Build,
    head: &CommitId,
    actual: &CommitId,
) -> Result<bool, Trouble> {
    // A commit of somebody else may not even be in the local clone.
    if shop.clone.resolve(actual.as_str()).await?.is_none() {
        return Ok(false);
    }
    let from = build.published.as_ref().or(build.base.as_ref());
    let after_ours = match from {
        Some(from) => from != actual && shop.clone.is_ancestor(from, actual).await?,
        None => false,
    };
    Ok(after_ours && shop.clone.is_ancestor(actual, head).await?)
}

async fn hold(
    shop: &Shop,
    context: &Context,
    build: &Versioned<Build>,
    actual: Option<&CommitId>,
) -> Result<bool, Trouble> {
    let context = of_build(context, build);
    let mut after = build.record.clone();
    let mut changes = ChangeSet::new();
    let detail = format!("somebody else moved `{}`", build.branch);
    warn!(build.id = %build.id, "{detail}");
    after.question = ask::branch_moved(shop, &context, &mut changes, build, actual).await?;
    after.reason = Some(detail.clone());
    if matches!(build.state, BuildState::Running | BuildState::Verifying) {
        enter(&mut after, BuildState::Paused);
        after.pause_reason = Some(PauseReason::Conflict);
        changes.emit(context.event(
            Subject::build(build.id),
            Payload::BuildPaused(BuildPaused {
                build_id: build.id,
                idea_slug: build.idea.clone(),
                reason: PauseReason::Conflict,
                detail,
            }),
        ));
    }
    if after == build.record {
        return Ok(true);
    }
    changes.update(build, &after);
    committed(&context, changes).await
}
