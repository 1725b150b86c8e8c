//! Takes locks from holders that are gone, and puts their tasks back.

use std::time::Duration;

use ropewalk_bus::judge::Judge;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};
use tokio::time::Instant;
use tracing::warn;

use super::Shop;
use super::context::of_build;
use super::ending::{self, Report, Rows};
use super::trouble::Trouble;

/// How often the locks are looked at, in parts of a time to live.
const LOOKS: u32 = 4;

/// Watches the locks of all processes on its own clock.
pub(super) struct Court {
    judge: Judge,
    began: Instant,
    sat: Option<Instant>,
}

impl Default for Court {
    fn default() -> Self {
        Self {
            judge: Judge::new(),
            began: Instant::now(),
            sat: None,
        }
    }
}

impl Court {
    /// Looks at the locks, if it is time, and expires those that nobody renews.
    pub(super) async fn sit(&mut self, shop: &Shop, context: &Context) -> Result<(), Trouble> {
        let pause: Duration = shop.options.lease / LOOKS;
        if self.sat.is_some_and(|sat| sat.elapsed() < pause) {
            return Ok(());
        }
        self.sat = Some(Instant::now());
        let query = Query::new().equal("state", LeaseState::Granted.as_str());
        let leases = context.store.list::<Lease>(query).await?;
        let dead: Vec<Versioned<Lease>> = self
            .judge
            .observe(&leases, self.began.elapsed())
            .into_iter()
            .cloned()
            .collect();
        for lease in &dead {
            expire(context, lease).await?;
        }
        if !dead.is_empty() {
            // What the dead left in their slots is kept; slots of the living are theirs.
            shop.slots.recover(context.now()).await?;
            shop.signals.ring_loops();
        }
        Ok(())
    }
}

async fn expire(context: &Context, lease: &Versioned<Lease>) -> Result<(), Trouble> {
    let holder = &lease.holder;
    warn!(task.id = %holder.task, "`{}` no longer renews the lock on `{}`", holder.loop_name, lease.path);
    let rows = Rows::load(context, holder.build, &holder.task, holder.attempt).await?;
    let mut changes = ChangeSet::new();
    match rows {
        Some(rows) => {
            let context = of_build(context, &rows.build).because_of(rows.task.cause);
            let reason = format!("`{}` gave no sign of life", holder.loop_name);
            let report = Report::default();
            ending::requeue(&context, &mut changes, &rows, &reason, None, &report).await?;
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
