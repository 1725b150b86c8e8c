//! Loads what decisions about a build are made of.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{Query, ReadError, Store, Versioned, task_key};

/// How often a change is decided anew because somebody else changed what it rests on.
pub(crate) const CONFLICTS: u32 = 64;

/// A build with its tasks in the order of the plan.
pub(crate) struct Plan {
    pub(crate) build: Versioned<Build>,
    pub(crate) tasks: Vec<Versioned<Task>>,
}

impl Plan {
    /// Loads a build with its tasks; the build first, so that its version covers the tasks read after it.
    pub(crate) async fn load(store: &Store, build: BuildId) -> Result<Option<Self>, ReadError> {
        let Some(build) = store.get::<Build>(&build.to_string()).await? else {
            return Ok(None);
        };
        let query = Query::new()
            .equal("build", build.id.to_string())
            .order_by("number");
        let tasks = store.list::<Task>(query).await?;
        Ok(Some(Self { build, tasks }))
    }

    /// Returns the tasks without their versions.
    pub(crate) fn records(&self) -> Vec<Task> {
        self.tasks.iter().map(|task| task.record.clone()).collect()
    }
}

/// Loads one task.
pub(crate) async fn task(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Option<Versioned<Task>>, ReadError> {
    store.get::<Task>(&task_key(build, task)).await
}

/// Loads one build.
pub(crate) async fn build(
    store: &Store,
    build: BuildId,
) -> Result<Option<Versioned<Build>>, ReadError> {
    store.get::<Build>(&build.to_string()).await
}

/// Lists the builds in one of `states`, the most urgent and oldest first.
pub(crate) async fn builds_in(
    store: &Store,
    states: &[BuildState],
) -> Result<Vec<Versioned<Build>>, ReadError> {
    let states = states.iter().map(|state| state.as_str());
    let query = Query::new()
        .one_of("state", states)
        .order_by("priority")
        .order_by("created_at");
    store.list::<Build>(query).await
}

/// Returns the context of events of `build`: caused by the handled event, else by what set the build going.
pub(crate) fn of_build(context: &Context, build: &Build) -> Context {
    context
        .for_claim(build.correlation_id, build.priority)
        .because_of(context.cause().or(build.cause))
}
