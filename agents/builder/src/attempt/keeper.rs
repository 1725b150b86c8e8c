//! Keeps an attempt alive: renews its locks, writes down its progress, and notices when it was taken away.

use ropewalk_runtime::in_hand;
use ropewalk_schemas::build::BuildState;
use ropewalk_store::{ChangeSet, CommitError};
use tracing::warn;

use super::work::{Work, held_now};
use crate::error::BuilderError;
use crate::isolation;
use crate::machine::task::{Input, apply_alone};

/// Renews the locks at a third of their time to live; returns why the attempt must end.
pub(super) async fn keep(work: &Work<'_>) -> String {
    let third = work.shared.options.lease / 3;
    loop {
        work.context.clock.sleep(third).await;
        match look(work).await {
            Ok(None) => {}
            Ok(Some(lost)) => {
                work.cancel.cancel();
                return lost;
            }
            // One missed renewal is no loss; the judge waits for a whole time to live.
            Err(error) => warn!("locks could not be renewed: {error}"),
        }
    }
}

async fn look(work: &Work<'_>) -> Result<Option<String>, BuilderError> {
    vouch(work).await;
    let Some(rows) = work.rows().await? else {
        return Ok(Some("the task was taken away".to_owned()));
    };
    if rows.build.state == BuildState::Stopped && !rows.build.gives_way() {
        return Ok(Some("the build was stopped".to_owned()));
    }
    let mut renewal = ChangeSet::new();
    for (path, token) in held_now(&work.locks) {
        renewal.renew(&path, token);
    }
    let mut changes = renewal.clone();
    if work.watching.moved() {
        let task = apply_alone(&rows.task, Input::Progress, work.context.now())?;
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

/// Lets a task go that the program may have died of, once it came further than where that happened.
async fn vouch(work: &Work<'_>) {
    let suspects = work.context.registry.suspects();
    let name = isolation::name(&work.claim.task);
    let died_at = suspects.deaths(&name).map(|deaths| deaths.step);
    if died_at.is_some() && in_hand::step() > died_at {
        suspects.let_go(&name, &work.context.store).await;
        work.shared.signals.wake_loops();
    }
}
