//! Goes on from an earlier build when its specification was amended: what the change does not touch stays.

use std::collections::HashMap;

use ropewalk_coordination::ownership;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::TaskId;
use ropewalk_schemas::attempt::{Evidence, Verdict};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::task::Task;
use ropewalk_store::{ChangeSet, Query, Versioned, revision_key};
use tracing::info;

use crate::Shared;
use crate::ask;
use crate::context::Plan;
use crate::decide::amend::{carried, touched};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::Input;

/// Ends the earlier build in favour of `build`, and returns its landed tasks that the new revision asks for unchanged.
pub(super) async fn take_over(
    shared: &Shared,
    context: &Context,
    changes: &mut ChangeSet,
    before: &Versioned<Build>,
    build: &mut Build,
    revision: &Revision,
) -> Result<HashMap<TaskId, Task>, BuilderError> {
    let Some(plan) = Plan::load(&context.store, before.id).await? else {
        return Ok(HashMap::new());
    };
    build.continues = Some(before.id);
    // The work that is kept still stands on theirs.
    build.follows.clone_from(&plan.build.follows);
    let input = Input::Amend {
        by: build.id,
        revision: revision.number,
    };
    let scene = Scene::new(shared, context, &plan.build);
    let ended = scene.build(changes, input).await?;
    changes.update(&plan.build, &ended);
    ask::supersede_all(context, changes, before.id, "a later revision is built").await?;
    let tasks = plan.records();
    let key = revision_key(before.spec, before.revision);
    let earlier = context.store.get::<Revision>(&key).await?;
    let touched = earlier
        .map(|earlier| touched(&earlier.document, &revision.document))
        .unwrap_or_default();
    let kept: HashMap<TaskId, Task> = revision
        .tasks
        .iter()
        .filter_map(|block| carried(block, &tasks, &touched))
        .map(|task| (task.id.clone(), task.clone()))
        .collect();
    carry_evidence(context, changes, before, build, &kept).await?;
    carry_ownership(context, changes, before, build).await?;
    info!(build.id = %build.id, "build `{}` keeps {} of {} tasks of build `{}`",
        build.id, kept.len(), tasks.len(), before.id);
    Ok(kept)
}

/// What was seen of carried work is seen for the new build too, so that each of its tasks shows its evidence.
async fn carry_evidence(
    context: &Context,
    changes: &mut ChangeSet,
    before: &Build,
    build: &Build,
    kept: &HashMap<TaskId, Task>,
) -> Result<(), BuilderError> {
    let query = Query::new()
        .equal("build", before.id.to_string())
        .equal("verdict", "passed");
    for seen in context.store.list::<Evidence>(query).await? {
        let task = seen.task.as_ref().and_then(|task| kept.get(task));
        let landed = task.is_some_and(|task| {
            task.commit
                .as_ref()
                .is_none_or(|commit| *commit == seen.commit)
        });
        if landed && seen.verdict == Verdict::Passed {
            changes.put(&Evidence {
                build: build.id,
                ..seen.record.clone()
            });
        }
    }
    Ok(())
}

async fn carry_ownership(
    context: &Context,
    changes: &mut ChangeSet,
    before: &Build,
    build: &Build,
) -> Result<(), BuilderError> {
    let owned = ownership::owned_by(&context.store, before.id).await?;
    // What ended with a merge stays ended: whoever changes such a file next takes it anew.
    for owned in owned.iter().filter(|owned| !owned.ended) {
        let after = Ownership {
            build: build.id,
            ..owned.record.clone()
        };
        changes.update(owned, &after);
    }
    Ok(())
}
