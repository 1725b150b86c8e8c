//! Spawns the tasks of a process by name, watches them and drains them.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::shutdown::Shutdown;

/// Names a task that ended by a panic, and what it said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task `{name}` crashed: {message}")]
pub struct TaskFailure {
    /// The name given at [`Supervisor::spawn`].
    pub name: &'static str,
    /// The panic message.
    pub message: String,
}

/// Spawns named tasks; a crashed one begins the shutdown, so that a process never limps on half dead.
#[derive(Debug, Clone)]
pub struct Supervisor {
    tracker: TaskTracker,
    shutdown: Shutdown,
    failure: Arc<Mutex<Option<TaskFailure>>>,
}

impl Supervisor {
    /// Returns a supervisor whose tasks watch `shutdown`.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            tracker: TaskTracker::new(),
            shutdown,
            failure: Arc::default(),
        }
    }

    /// Returns the shutdown that the tasks of this supervisor watch.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Spawns `task` under `name`; it must end by itself after a soft stop, and is dropped at a hard one.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        let failure = Arc::clone(&self.failure);
        self.tracker.spawn(async move {
            let watched = Self::guard(name, task);
            let outcome = tokio::select! {
                outcome = watched => outcome,
                () = shutdown.hard().cancelled() => Ok(()),
            };
            if let Err(crash) = outcome {
                error!(task.name = name, "{crash}");
                failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(crash);
                shutdown.begin();
            }
        });
    }

    /// Runs `work` to its end inside the caller's task; a panic becomes an error instead of unwinding.
    pub async fn guard<T>(
        name: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, TaskFailure> {
        let caught = AssertUnwindSafe(work).catch_unwind().await;
        caught.map_err(|panic| TaskFailure {
            name,
            message: message(panic.as_ref()),
        })
    }

    /// Waits until every task has ended, at most `deadline`; then aborts what is left and waits for that.
    ///
    /// Errors: the first crash of a task, if any.
    pub async fn drain(&self, deadline: Duration) -> Result<(), TaskFailure> {
        self.tracker.close();
        if tokio::time::timeout(deadline, self.tracker.wait())
            .await
            .is_err()
        {
            self.shutdown.abort();
            self.tracker.wait().await;
        }
        match self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(crash) => Err(crash),
            None => Ok(()),
        }
    }
}

/// Returns what a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_crashed_task_begins_the_shutdown_and_is_named() {
        let supervisor = Supervisor::new(Shutdown::new());
        supervisor.spawn("healthy", {
            let stop = supervisor.shutdown().soft().clone();
            async move { stop.cancelled().await }
        });
        supervisor.spawn("broken", async { panic!("out of rope") });
        let failure = supervisor.drain(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(
            failure,
            TaskFailure {
                name: "broken",
                message: "out of rope".to_owned()
            }
        );
    }

    #[tokio::test]
    async fn a_task_that_ignores_the_drain_is_aborted_at_the_deadline() {
        let supervisor = Supervisor::new(Shutdown::new());
        supervisor.spawn("deaf", std::future::pending());
        supervisor.shutdown().begin();
        assert_eq!(supervisor.drain(Duration::from_millis(10)).await, Ok(()));
    }
}
