//! Ends an earlier build in favour of an amended specification. What runs and is asked for as before goes on to its end,
//! and the new build waits for it; what the change touches ends at once, with its work kept.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::specification::Revision;
use ropewalk_store::{ChangeSet, Versioned, revision_key};
use tracing::info;

use crate::Shared;
use crate::ask;
use crate::context::Plan;
use crate::decide::amend::{is_given_up, touched};
use crate::decide::counts::is_active;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::{build, task};

/// Ends the earlier build in favour of `build`, which takes over what landed as soon as nothing of it runs any more.
pub(super) async fn take_over(
    shared: &Shared,
    context: &Context,
    changes: &mut ChangeSet,
    before: &Versioned<Build>,
    build: &mut Build,
    revision: &Revision,
) -> Result<(), BuilderError> {
    let Some(plan) = Plan::load(&context.store, before.id).await? else {
        return Ok(());
    };
    build.continues = Some(before.id);
    // The work that is kept still stands on theirs.
    build.follows.clone_from(&plan.build.follows);
    let scene = Scene::new(shared, context, &plan.build);
    let input = build::Input::Amend {
        by: build.id,
        revision: revision.number,
    };
    let ended = scene.build(changes, input).await?;
    changes.update(&plan.build, &ended);
    ask::supersede_all(context, changes, before.id, "a later revision is built").await?;
    let key = revision_key(before.spec, before.revision);
    let earlier = context.store.get::<Revision>(&key).await?;
    let touched = earlier
        .map(|earlier| touched(&earlier.document, &revision.document))
        .unwrap_or_default();
    for row in plan.tasks.iter().filter(|row| is_active(row.state)) {
        if is_given_up(&revision.tasks, row, &touched) {
            let why = format!("revision {} asks for something else", revision.number);
            let after = scene
                .task(changes, row, task::Input::Interrupt { why })
                .await?;
            changes.update(row, &after);
        } else {
            // One that ends meanwhile may have landed: that is looked at again.
            changes.require(row);
        }
    }
    info!(build.id = %build.id, "build `{}` goes on from build `{}`", build.id, before.id);
    Ok(())
}
