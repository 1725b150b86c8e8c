//! Ends an earlier build in favour of an amended specification. What runs and is asked for as before goes on to its end,
//! and the new build waits for it; what the change touches ends at once, with its work kept.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::amendment::{is_given_up, touched};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::specification::Revision;
use ropewalk_store::{ChangeSet, Versioned, revision_key};
use tracing::info;

use crate::SharedState;
use crate::ask;
use crate::context::Plan;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::{build, task};

/// Ends the newest of the earlier builds in favour of `build`, which takes over what landed as soon as nothing of them
/// runs any more.
pub(super) async fn take_over(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    earlier: &[Versioned<Build>],
    build: &mut Build,
    revision: &Revision,
) -> Result<(), BuilderError> {
    let Some(before) = earlier.last() else {
        return Ok(());
    };
    build.continues = Some(before.id);
    // The work that is kept still stands on theirs.
    build.follows.clone_from(&before.follows);
    let input = build::Input::Amend {
        by: build.id,
        revision: revision.number,
    };
    let scene = Scene::new(shared, context, before);
    let ended = scene.build(changes, input).await?;
    changes.update(before, &ended);
    ask::supersede_all(context, changes, before.id, "a later revision is built").await?;
    // One that gave way already may still run, for a build that never began.
    for one in earlier.iter().filter(|one| one.completed_at.is_none()) {
        if end_touched(shared, context, changes, one, revision).await? {
            build.reason = Some(format!(
                "begins when what still runs of build `{}` has ended",
                one.id
            ));
        }
    }
    info!(build.id = %build.id, "build `{}` goes on from build `{}`", build.id, before.id);
    Ok(())
}

/// Ends what runs of a build and is asked for otherwise by `revision`; returns whether something goes on.
async fn end_touched(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    before: &Versioned<Build>,
    revision: &Revision,
) -> Result<bool, BuilderError> {
    let Some(plan) = Plan::load(&context.store, before.id).await? else {
        return Ok(false);
    };
    let key = revision_key(before.spec, before.revision);
    let earlier = context.store.get::<Revision>(&key).await?;
    let touched = earlier
        .map(|earlier| touched(&earlier.document, &revision.document))
        .unwrap_or_default();
    let scene = Scene::new(shared, context, before);
    let mut goes_on = false;
    for row in plan.tasks.iter().filter(|row| row.state.is_active()) {
        if is_given_up(&revision.tasks, row, &touched) {
            let why = format!("revision {} asks for something else", revision.number);
            let after = scene
                .task(changes, row, task::Input::Interrupt { why })
                .await?;
            changes.update(row, &after);
        } else {
            // One that ends meanwhile may have landed: that is looked at again.
            changes.require(row);
            goes_on = true;
        }
    }
    Ok(goes_on)
}
