//! Loads what decisions about a build are made of.

pub(crate) mod consents;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wish::Wish;
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use ropewalk_store::{Query, ReadError, Store, Versioned, task_key};
use ropewalk_workspace::{Notes, Side};

use super::decide::counts::{TaskImpact, standing};

/// Says of which side the plan in that folder is right, which each build of the idea writes anew.
pub(crate) fn notes(build: &Build, right: Side) -> Notes {
    let folder = format!("{}/build", RepoPath::of_idea(&build.idea));
    Notes { folder, right }
}

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

/// Counts whom the end of `task` keeps from going on.
pub(crate) async fn standing_of(context: &Context, task: &Task) -> Result<TaskImpact, ReadError> {
    let plan = Plan::load(&context.store, task.build).await?;
    Ok(plan.map_or_else(TaskImpact::default, |plan| {
        standing(&plan.records(), &task.id)
    }))
}

/// Loads one task.
pub(crate) async fn task(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Option<Versioned<Task>>, ReadError> {
    store.get::<Task>(&task_key(build, task)).await
}

/// Lists the attempts at a task, the first one first.
pub(crate) async fn attempts_at(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Vec<Versioned<Attempt>>, ReadError> {
    let query = Query::new()
        .equal("build", build.to_string())
        .equal("task", task.as_str())
        .order_by("number");
    store.list::<Attempt>(query).await
}

/// Loads one build.
pub(crate) async fn build(
    store: &Store,
    build: BuildId,
) -> Result<Option<Versioned<Build>>, ReadError> {
    store.get::<Build>(&build.to_string()).await
}

/// Loads what a person wants of the branch of a build.
pub(crate) async fn wish(
    store: &Store,
    build: BuildId,
) -> Result<Option<Versioned<Wish>>, ReadError> {
    store.get::<Wish>(&build.to_string()).await
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
