//! Ends the builds of an idea that a person gave up.

use ropewalk_coordination::ownership;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::IdeaAbandoned;
use ropewalk_store::{ChangeSet, Query};
use tracing::info;

use crate::SharedState;
use crate::ask;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::Input;

/// Ends every build of the idea that is not landed: its files are free, and nothing is asked about it any more.
pub(super) async fn abandoned(
    shared: &SharedState,
    context: &Context,
    given_up: &IdeaAbandoned,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let of_idea = Query::new()
        .equal("idea", given_up.idea_slug.as_str())
        .order_by("created_at");
    let by = &given_up.abandoned_by;
    let why = given_up.reason.as_deref().map(|why| format!(": {why}"));
    let told = format!("abandoned by {by}{}", why.unwrap_or_default());
    for build in context.store.list::<Build>(of_idea).await? {
        let scene = Scene::new(shared, context, &build);
        let input = Input::Abandon { told: told.clone() };
        let after = match scene.build(&mut changes, input).await {
            Ok(after) => after,
            // It is landed, a later one goes on from it, or it was abandoned before.
            Err(BuilderError::Illegal(_)) => continue,
            Err(error) => return Err(error),
        };
        changes.update(&build, &after);
        let owned = ownership::owned_by(&context.store, build.id).await?;
        ownership::abandon(&mut changes, &owned);
        ask::supersede_all(context, &mut changes, build.id, "the idea was abandoned").await?;
        info!(build.id = %build.id, "build `{}` was abandoned with its idea", build.id);
    }
    Ok(changes)
}
