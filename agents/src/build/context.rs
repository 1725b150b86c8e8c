//! Loads what decisions about a build are made of.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::{Lease, LeaseState, Ownership};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::{Party, Wait};
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use ropewalk_store::{Query, ReadError, Store, Versioned, path_key, task_key};

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

/// Lists the waits of a task.
pub(crate) async fn waits_of(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Vec<Versioned<Wait>>, ReadError> {
    let waiter = Party::Task {
        build,
        task: task.clone(),
    };
    let query = Query::new().equal("waiter", waiter.to_string());
    store.list::<Wait>(query).await
}

/// Loads the lease on a file, if it is granted to anybody.
pub(crate) async fn granted_lease(
    store: &Store,
    path: &RepoPath,
) -> Result<Option<Versioned<Lease>>, ReadError> {
    let lease = store.get::<Lease>(&path_key(path)).await?;
    Ok(lease.filter(|lease| lease.state == LeaseState::Granted))
}

/// A file that another build owns, or owned.
pub(crate) struct Owned {
    pub(crate) row: Versioned<Ownership>,
    /// Whether the owner still stands in the way.
    pub(crate) live: bool,
}

/// Loads who owns a file; none when nobody does.
pub(crate) async fn owner_of(store: &Store, path: &RepoPath) -> Result<Option<Owned>, ReadError> {
    let Some(row) = store.get::<Ownership>(&path_key(path)).await? else {
        return Ok(None);
    };
    let owner = build(store, row.build).await?;
    let live = owner.is_some_and(|owner| still_owns(&owner));
    Ok(Some(Owned { row, live }))
}

/// Ownership ends when the build is merged or given up.
fn still_owns(build: &Build) -> bool {
    build.merged.is_none() && !matches!(build.state, BuildState::Failed | BuildState::Stopped)
}

/// Returns the context of events of `build`: caused by the handled event, else by what set the build going.
pub(crate) fn of_build(context: &Context, build: &Build) -> Context {
    context
        .for_claim(build.correlation_id, build.priority)
        .because_of(context.cause().or(build.cause))
}
