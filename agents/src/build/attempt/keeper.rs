//! Keeps an attempt alive: renews its locks, writes down its progress, and notices when it was taken away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ropewalk_engine::Observer;
use ropewalk_schemas::build::BuildState;
use ropewalk_store::{ChangeSet, CommitError};
use tracing::warn;

use super::{Work, held_now};
use crate::build::trouble::Trouble;

/// Whether something moved since the keeper last looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulse(Arc<AtomicBool>);

impl Pulse {
    /// Says whether something moved since the last call.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Observer for Pulse {
    fn progress(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Renews the locks at a third of their time to live; returns why the attempt must end.
pub(super) async fn keep(work: &Work<'_>) -> String {
    let third = work.shop.options.lease / 3;
    loop {
        work.context.clock.sleep(third).await;
        match look(work).await {
            Ok(None) => {}
            Ok(Some(lost)) => {
                work.cancel.cancel();
                return lost;
            }
            // One missed renewal is no loss; the judge waits for a whole time to live.
            Err(trouble) => warn!("locks could not be renewed: {trouble}"),
        }
    }
}

async fn look(work: &Work<'_>) -> Result<Option<String>, Trouble> {
    let Some(rows) = work.rows().await? else {
        return Ok(Some("the task was taken away".to_owned()));
    };
    if rows.build.state == BuildState::Stopped {
        return Ok(Some("the build was stopped".to_owned()));
    }
    let mut renewal = ChangeSet::new();
    for (path, token) in held_now(&work.locks) {
        renewal.renew(&path, token);
    }
    let mut changes = renewal.clone();
    if work.pulse.take() {
        let mut task = rows.task.record.clone();
        task.progress_at = Some(work.context.now());
        changes.update(&rows.task, &task);
    }
    let outcome = match work.context.store.commit(changes).await {
        Err(CommitError::Conflict { .. }) => work.context.store.commit(renewal).await,
        other => other,
    };
    match outcome {
        // A lock given back in between belongs to an attempt that has just landed.
        Err(CommitError::Fenced { path, .. }) => Ok(work
            .rows()
            .await?
            .is_some()
            .then(|| format!("the lock on `{path}` was lost"))),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(None),
    }
}
