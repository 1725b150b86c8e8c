//! Takes locks from holders that are gone, and puts their tasks back.

use std::time::Duration;

use ropewalk_coordination::judge::Judge;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};
use tokio::time::Instant;
use tracing::warn;

use super::recover;
use crate::SharedState;
use crate::attempt::ending;
use crate::attempt::rows::Rows;
use crate::error::BuilderError;

/// How often the locks are looked at, in parts of a time to live.
const LOOKS: u32 = 4;

/// Watches the locks of all processes on its own clock.
pub(super) struct LeaseReaper {
    judge: Judge,
    began: Instant,
    looked: Option<Instant>,
}

impl Default for LeaseReaper {
    fn default() -> Self {
        Self {
            judge: Judge::new(),
            began: Instant::now(),
            looked: None,
        }
    }
}

impl LeaseReaper {
    /// Looks at the locks, if it is time, and expires those that nobody renews.
    pub(super) async fn reap(
        &mut self,
        shared: &SharedState,
        context: &Context,
    ) -> Result<(), BuilderError> {
        let pause: Duration = shared.options.lease / LOOKS;
        if self.looked.is_some_and(|looked| looked.elapsed() < pause) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let query = Query::new().equal("state", LeaseState::Granted.as_str());
        let leases = context.store.list::<Lease>(query).await?;
        let dead: Vec<Versioned<Lease>> = self
            .judge
            .observe(&leases, self.began.elapsed())
            .into_iter()
            .cloned()
            .collect();
        let gone = gone(shared, context, &leases).await?;
        if dead.is_empty() && gone.is_empty() {
            return Ok(());
        }
        recover::keep_work(shared, context).await?;
        for lease in &dead {
            expire(shared, context, lease).await?;
        }
        for attempt in &gone {
            let reason = format!("`{}` gave no sign of life", attempt.loop_name);
            recover::put_back(shared, context, attempt, &reason).await?;
        }
        shared.signals.wake_loops();
        Ok(())
    }
}

/// Finds attempts without locks whose loop is silent for good. Where no other process builds there are none: the
/// attempts of this one run, and those of the one before it were put back at the start.
async fn gone(
    shared: &SharedState,
    context: &Context,
    leases: &[Versioned<Lease>],
) -> Result<Vec<Attempt>, BuilderError> {
    if shared.processes.is_alone() {
        return Ok(Vec::new());
    }
    let limit = shared.options.silent_after;
    let mut gone = Vec::new();
    for attempt in recover::open_attempts(context).await? {
        let holds = |lease: &Versioned<Lease>| lease.holder.attempt == attempt.id;
        if shared.signals.is_running(attempt.id) || leases.iter().any(holds) {
            continue;
        }
        let name = attempt.loop_name.as_str();
        let seen = context.store.get::<Component>(name).await?;
        let seen = seen.map_or(attempt.started_at, |row| row.last_seen);
        let silent = (context.now() - seen).to_std().unwrap_or_default();
        if silent >= limit {
            gone.push(attempt.record);
        }
    }
    Ok(gone)
}

async fn expire(
    shared: &SharedState,
    context: &Context,
    lease: &Versioned<Lease>,
) -> Result<(), BuilderError> {
    let holder = &lease.holder;
    warn!(task.id = %holder.task, "`{}` no longer renews the lock on `{}`", holder.loop_name, lease.path);
    let rows = Rows::load(context, holder.build, &holder.task, holder.attempt).await?;
    let mut changes = ChangeSet::new();
    match rows {
        Some(rows) => {
            let reason = format!("`{}` gave no sign of life", holder.loop_name);
            let report = recover::left_behind(shared, &rows.attempt).await?;
            ending::requeue(shared, context, &mut changes, &rows, &reason, None, &report).await?;
        }
        None => {
            changes.expire(&lease.path, lease.token);
        }
    }
    // A renewal that comes late wins over the judgement.
    changes.require(lease);
    match context.store.commit(changes).await {
        Ok(_) | Err(CommitError::Conflict { .. } | CommitError::Fenced { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
