//! Wakes workers of this process and ends attempts that must not go on.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often a loop looks without being called, for tasks that come due and for work of other processes.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Counts bells; whoever holds a receiver misses none.
pub(crate) struct Signals {
    scheduler: watch::Sender<u64>,
    loops: watch::Sender<u64>,
    running: Mutex<HashMap<AttemptId, RunningAttempt>>,
    owed: Mutex<HashSet<BuildId>>,
}

struct RunningAttempt {
    build: BuildId,
    task: TaskId,
    cancel: CancellationToken,
    /// Why it must end, where somebody said so.
    reason: Option<String>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            scheduler: watch::Sender::new(0),
            loops: watch::Sender::new(0),
            running: Mutex::default(),
            owed: Mutex::default(),
        }
    }
}

impl Signals {
    /// Asks the scheduler to look at the builds.
    pub(crate) fn wake_scheduler(&self) {
        self.scheduler.send_modify(|count| *count += 1);
    }

    /// Asks the loops to look for tasks.
    pub(crate) fn wake_loops(&self) {
        self.loops.send_modify(|count| *count += 1);
    }

    /// Asks the scheduler to let the branch of a build follow its head, though the build has ended.
    pub(crate) fn owe(&self, build: BuildId) {
        self.owed().insert(build);
        self.wake_scheduler();
    }

    /// Takes the builds whose branches somebody wants to follow their heads.
    pub(crate) fn take_owed(&self) -> HashSet<BuildId> {
        std::mem::take(&mut *self.owed())
    }

    /// Listens for the scheduler's bell.
    pub(crate) fn scheduler(&self) -> watch::Receiver<u64> {
        self.scheduler.subscribe()
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
        let running = RunningAttempt {
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

    /// Ends one attempt for a reason.
    pub(crate) fn cancel(&self, attempt: AttemptId, reason: &str) {
        if let Some(found) = self.running().get_mut(&attempt) {
            found.reason.get_or_insert_with(|| reason.to_owned());
            found.cancel.cancel();
        }
    }

    /// Lists the attempts that run in this process and may go on, with their builds and tasks.
    pub(crate) fn going(&self) -> Vec<(AttemptId, BuildId, TaskId)> {
        let running = self.running();
        let going = running.iter().filter(|(_, one)| !one.cancel.is_cancelled());
        going
            .map(|(attempt, one)| (*attempt, one.build, one.task.clone()))
            .collect()
    }

    /// Returns why an attempt was ended, where somebody said so.
    pub(crate) fn reason(&self, attempt: AttemptId) -> Option<String> {
        self.running().get(&attempt)?.reason.clone()
    }

    /// Returns whether an attempt runs in this process.
    pub(crate) fn is_running(&self, attempt: AttemptId) -> bool {
        self.running().contains_key(&attempt)
    }

    /// Returns how many attempts run in this process.
    pub(crate) fn count(&self) -> usize {
        self.running().len()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<AttemptId, RunningAttempt>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owed(&self) -> MutexGuard<'_, HashSet<BuildId>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
