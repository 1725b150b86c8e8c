//! Wakes workers of this process and ends attempts that must not go on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Counts bells; whoever holds a receiver misses none.
pub(crate) struct Signals {
    steward: watch::Sender<u64>,
    loops: watch::Sender<u64>,
    running: Mutex<HashMap<AttemptId, Running>>,
}

struct Running {
    build: BuildId,
    task: TaskId,
    cancel: CancellationToken,
    /// Why it must end, where somebody said so.
    reason: Option<String>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            steward: watch::Sender::new(0),
            loops: watch::Sender::new(0),
            running: Mutex::default(),
        }
    }
}

impl Signals {
    /// Asks the steward to look at the builds.
    pub(crate) fn ring_steward(&self) {
        self.steward.send_modify(|count| *count += 1);
    }

    /// Asks the loops to look for tasks.
    pub(crate) fn ring_loops(&self) {
        self.loops.send_modify(|count| *count += 1);
    }

    /// Listens for the steward's bell.
    pub(crate) fn steward(&self) -> watch::Receiver<u64> {
        self.steward.subscribe()
    }

    /// Listens for the loops' bell.
    pub(crate) fn loops(&self) -> watch::Receiver<u64> {
        self.loops.subscribe()
    }

    /// Notes a running attempt and returns the token that ends it.
    pub(crate) fn begin(
        &self,
        attempt: AttemptId,
        build: BuildId,
        task: &TaskId,
    ) -> CancellationToken {
        let cancel = CancellationToken::new();
        let running = Running {
            build,
            task: task.clone(),
            cancel: cancel.clone(),
            reason: None,
        };
        self.running().insert(attempt, running);
        cancel
    }

    /// Forgets an attempt that has ended.
    pub(crate) fn end(&self, attempt: AttemptId) {
        self.running().remove(&attempt);
    }

    /// Ends one attempt for a reason; false when it does not run in this process.
    pub(crate) fn cancel_attempt(&self, attempt: AttemptId, reason: &str) -> bool {
        let mut running = self.running();
        let Some(found) = running.get_mut(&attempt) else {
            return false;
        };
        found.reason = Some(reason.to_owned());
        found.cancel.cancel();
        true
    }

    /// Returns why an attempt was ended, where somebody said so.
    pub(crate) fn reason(&self, attempt: AttemptId) -> Option<String> {
        self.running().get(&attempt)?.reason.clone()
    }

    /// Returns whether an attempt runs in this process.
    pub(crate) fn is_running(&self, attempt: AttemptId) -> bool {
        self.running().contains_key(&attempt)
    }

    /// Ends every attempt of a build.
    pub(crate) fn cancel_build(&self, build: BuildId) {
        for running in self.running().values() {
            if running.build == build {
                running.cancel.cancel();
            }
        }
    }

    /// Ends the attempt at one task.
    pub(crate) fn cancel_task(&self, build: BuildId, task: &TaskId) {
        for running in self.running().values() {
            if running.build == build && running.task == *task {
                running.cancel.cancel();
            }
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<AttemptId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
