//! Writes down what tasks wait for, breaks a cycle of waits that a new one closes, and wakes those who wait for locks.

use ropewalk_coordination::deadlock::{self, WaitError};
use ropewalk_coordination::locks;
use ropewalk_orchestrator::Context;
use ropewalk_runtime::Clock;
use ropewalk_schemas::wait::{Party, Wait};
use ropewalk_store::{ChangeSet, CommitError, CommitFeed};
use tokio::sync::watch;

use crate::SharedState;
use crate::error::BuilderError;
use crate::signals::LOOK_EVERY;

/// What came of writing down waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// They are written.
    Written,
    /// They closed a cycle, and another member gave way.
    Freed,
    /// They closed a cycle, and the waiter gives way: its locks are gone, and what was to be changed is, but for its waits.
    GaveWay(String),
    /// What the wait rests on has changed.
    Contended,
}

/// Commits `changes` with exactly these waits of `waiter`, and with what breaks a cycle if they close one.
pub(crate) async fn wait(
    shared: &SharedState,
    context: &Context,
    waiter: &Party,
    mut changes: ChangeSet,
    waits: &[Wait],
) -> Result<WaitOutcome, BuilderError> {
    let store = &context.store;
    for known in locks::waits_of(store, waiter).await? {
        if !waits.iter().any(|wait| wait.resource == known.resource) {
            changes.delete(&known);
        }
    }
    let announce = |subject, payload| context.event(subject, payload);
    let now = context.now();
    let found = if shared.options.check_cycles {
        deadlock::wait(store, &changes, waits, now, &announce).await
    } else {
        let written = deadlock::wait_unchecked(store, &changes, waits, now, &announce).await;
        written.map(|()| None)
    };
    Ok(match found {
        Ok(Some(deadlock)) if deadlock.victim.as_ref() == Some(waiter) => {
            WaitOutcome::GaveWay(deadlock.cycle.names().join(", "))
        }
        Ok(Some(deadlock)) if deadlock.victim.is_some() => WaitOutcome::Freed,
        Ok(_) => WaitOutcome::Written,
        Err(WaitError::Commit(CommitError::Conflict { .. } | CommitError::Fenced { .. })) => {
            WaitOutcome::Contended
        }
        Err(WaitError::Commit(error)) => return Err(error.into()),
        Err(WaitError::Read(error)) => return Err(error.into()),
    })
}

/// Listens for locks that come free.
pub(crate) struct FreedLocks {
    feed: CommitFeed,
    bell: watch::Receiver<u64>,
    clock: Clock,
}

impl FreedLocks {
    /// Begins to listen: what comes free from now on is not missed.
    pub(crate) fn listen(shared: &SharedState, context: &Context) -> Self {
        let mut bell = shared.signals.loops();
        bell.mark_unchanged();
        Self {
            feed: context.store.feed(),
            bell,
            clock: context.clock.clone(),
        }
    }

    /// Waits until a lock may have come free: a commit told of one, or was missed, the loops were called, or some time
    /// passed.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            () = lock_event(&mut self.feed) => {}
            changed = self.bell.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            () = self.clock.sleep(LOOK_EVERY) => {}
        }
    }
}

async fn lock_event(feed: &mut CommitFeed) {
    loop {
        match feed.next().await {
            Some(Ok(committed)) => {
                let mut events = committed.events.iter();
                if events.any(|stored| stored.event.event_type.starts_with("lock.")) {
                    return;
                }
            }
            // What was missed may have been one.
            Some(Err(_)) => return,
            None => std::future::pending().await,
        }
    }
}
