//! Lets tasks wait for a provider that is away: no try is counted, and nobody is asked.

use ropewalk_engine::{ModelRole, outages};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use ropewalk_store::{ChangeSet, ReadError, retry_on_conflict};

use super::SharedState;
use super::attempt::report::{self, Report};
use super::attempt::rows::Rows;
use super::context::of_build;
use super::effects::{Scene, party};
use super::error::BuilderError;
use super::machine::task::Input;
use ropewalk_coordination::locks;

/// Returns the outage of the provider that builds, if it is away and nobody takes over: then nothing is claimed.
pub(crate) async fn of_builds(
    shared: &SharedState,
    context: &Context,
) -> Result<Option<Outage>, ReadError> {
    outages::of_role(&context.store, &shared.engine.models(), ModelRole::Build).await
}

/// Records that an attempt met an outage: its work is kept, and its task waits.
pub(crate) async fn met(
    shared: &SharedState,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    outage: &Outage,
    report: &Report,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, ids.1, {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return report::kept(context, ids.2, report).await.map(Some);
        };
        let context = of_build(context, &rows.build).because_of(rows.task.cause);
        let input = Input::LoseProvider {
            provider: outage.provider.clone(),
            told: outage.in_words(),
        };
        let mut changes = ChangeSet::new();
        let scene = Scene::new(shared, &context, &rows.build).with(report);
        let task = scene.task(&mut changes, &rows.task, input).await?;
        changes.update(&rows.task, &task);
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

/// Returns whether a task still waits for a provider: that one is away, and nobody takes over.
pub(crate) async fn is_awaited(
    shared: &SharedState,
    context: &Context,
    task: &Task,
) -> Result<bool, BuilderError> {
    if of_builds(shared, context).await?.is_none() {
        return Ok(false);
    }
    for wait in locks::waits_of(&context.store, &party(task)).await? {
        if let Resource::Outage { provider } = &wait.resource
            && outages::standing(&context.store, provider).await?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
