//! Loads what the monitor looks at.

use std::collections::BTreeMap;

use ropewalk_coordination::locks;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wait::Party;
use ropewalk_schemas::{AttemptId, BuildId};
use ropewalk_store::{Query, ReadError, Store, Versioned, attempt_key};

use super::decide::{StuckCause, WatchedTask};

/// The states in which an attempt runs.
const ACTIVE: [TaskState; 4] = [
    TaskState::Claimed,
    TaskState::Working,
    TaskState::Validating,
    TaskState::Landing,
];

/// Loads the tasks that run.
pub(super) async fn work(store: &Store) -> Result<Vec<WatchedTask>, ReadError> {
    let active = ACTIVE.iter().map(|state| state.as_str());
    let running = store
        .list::<Task>(Query::new().one_of("state", active))
        .await?;
    let mut tasks = Vec::with_capacity(running.len());
    for task in running {
        if let Some(attempt) = task.attempt
            && let Some(attempt) = store.get::<Attempt>(&attempt_key(attempt)).await?
        {
            let waiter = Party::Task {
                build: task.build,
                task: task.id.clone(),
            };
            let waits = locks::waits_of(store, &waiter).await?;
            tasks.push(watched(task.record, attempt.record, !waits.is_empty()));
        }
    }
    Ok(tasks)
}

fn watched(task: Task, attempt: Attempt, waits: bool) -> WatchedTask {
    let last_sign = task.progress_at.unwrap_or(attempt.started_at);
    WatchedTask {
        waits,
        last_sign: last_sign.max(attempt.started_at),
        build: task.build,
        task: task.id,
        phase: task.block.phase,
        attempt: attempt.id,
        loop_name: attempt.loop_name,
    }
}

/// Loads the components that any process has registered.
pub(super) async fn components(store: &Store) -> Result<Vec<Component>, ReadError> {
    Ok(records(store.list::<Component>(Query::new()).await?))
}

/// Loads the alerts that stand.
pub(super) async fn open_alerts(store: &Store) -> Result<Vec<Versioned<Alert>>, ReadError> {
    store.list::<Alert>(Query::new().equal("cleared", 0)).await
}

/// Loads the attempts that standing alerts speak of.
pub(super) async fn attempts(
    store: &Store,
    alerts: &[Versioned<Alert>],
) -> Result<BTreeMap<AttemptId, Attempt>, ReadError> {
    let mut attempts = BTreeMap::new();
    for cause in alerts
        .iter()
        .filter_map(|alert| StuckCause::parse(&alert.cause))
    {
        if let Some(attempt) = store.get::<Attempt>(&attempt_key(cause.attempt)).await? {
            attempts.insert(attempt.id, attempt.record);
        }
    }
    Ok(attempts)
}

/// Loads a build.
pub(super) async fn build(
    store: &Store,
    build: BuildId,
) -> Result<Option<Versioned<Build>>, ReadError> {
    store.get::<Build>(&build.to_string()).await
}

fn records<R>(rows: Vec<Versioned<R>>) -> Vec<R> {
    rows.into_iter().map(|row| row.record).collect()
}
