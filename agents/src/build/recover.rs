//! Sets right what a crash left behind, before the first event is taken.

use ropewalk_orchestrator::Context;
use ropewalk_runtime::failpoint;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};
use ropewalk_workspace::PreserveKey;
use tracing::{info, warn};

use super::Shop;
use super::context::{CONFLICTS, builds_in, of_build};
use super::ending::{self, Report, Rows};
use super::trouble::Trouble;
use super::{publish, tasks_file};

/// Keeps the work of attempts that died, frees what they held, puts their tasks back, publishes what landed.
///
/// Where other processes build too, only what an earlier process in this one's place left is known to be dead; the rest
/// is judged by its signs of life (`court`).
pub(crate) async fn run(shop: &Shop, context: &Context) -> Result<(), Trouble> {
    keep_work(shop, context).await?;
    failpoint!("build.recover.slots");
    for attempt in open_attempts(context).await? {
        if !shop.crowd.was_ours(&attempt.loop_name) {
            continue;
        }
        put_back(
            shop,
            context,
            &attempt,
            "the program was ended while it ran",
        )
        .await?;
    }
    failpoint!("build.recover.attempts");
    free_orphans(shop, context).await?;
    failpoint!("build.recover.locks");
    for build in builds_in(&context.store, BuildState::ALL).await? {
        if shop.crowd.is_alone() {
            stop_the_clock(context, &build).await?;
        }
        if build.head != build.published {
            catch_up(shop, context, &build).await;
        }
    }
    Ok(())
}

/// Keeps what the dead left in their slots, and notes with each attempt where; slots of the living are theirs.
pub(super) async fn keep_work(shop: &Shop, context: &Context) -> Result<(), Trouble> {
    for work in shop.slots.recover(context.now()).await? {
        let PreserveKey {
            build,
            task,
            attempt,
        } = work.key;
        let query = Query::new()
            .equal("build", build.to_string())
            .equal("task", task.as_str())
            .equal("number", i64::from(attempt));
        let report = Report {
            preserve_ref: Some(work.preserved.reference),
            ..Report::default()
        };
        // Another process may end the attempt at the same time, and not know of the work.
        for row in context.store.list::<Attempt>(query).await? {
            ending::kept(context, row.id, &report).await?;
        }
    }
    Ok(())
}

pub(super) async fn open_attempts(context: &Context) -> Result<Vec<Versioned<Attempt>>, Trouble> {
    let open = AttemptState::ALL
        .iter()
        .filter(|state| !state.is_final())
        .map(|state| state.as_str());
    let query = Query::new().one_of("state", open);
    Ok(context.store.list::<Attempt>(query).await?)
}

/// Puts the task of an attempt back whose process is gone.
pub(super) async fn put_back(
    shop: &Shop,
    context: &Context,
    attempt: &Attempt,
    reason: &str,
) -> Result<(), Trouble> {
    if shop.signals.is_running(attempt.id) {
        return Ok(());
    }
    let report = left_behind(shop, attempt).await?;
    for _ in 0..CONFLICTS {
        let mut changes = ChangeSet::new();
        let rows = Rows::load(context, attempt.build, &attempt.task, attempt.id).await?;
        if let Some(rows) = rows {
            let context = of_build(context, &rows.build).because_of(rows.task.cause);
            ending::requeue(&context, &mut changes, &rows, reason, None, &report).await?;
        } else {
            // The task went on without it; only its own row is left open.
            let key = attempt.id.to_string();
            let Some(row) = context.store.get::<Attempt>(&key).await? else {
                return Ok(());
            };
            let after = Attempt {
                state: AttemptState::Interrupted,
                ended_at: Some(context.now()),
                ..row.record.clone()
            };
            changes.update(&row, &after);
        }
        match context.store.commit(changes).await {
            Ok(_) => {
                let (task, number) = (&attempt.task, attempt.number);
                info!(task.id = %task, "attempt {number} at `{task}` was cut off and is run again");
                return Ok(());
            }
            Err(CommitError::Conflict { .. } | CommitError::Fenced { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(attempt.task.to_string()))
}

/// Says where the work of an attempt is that cannot say it itself any more.
pub(super) async fn left_behind(shop: &Shop, attempt: &Attempt) -> Result<Report, Trouble> {
    let key = PreserveKey {
        build: attempt.build,
        task: attempt.task.clone(),
        attempt: attempt.number,
    };
    let kept = shop.clone.kept(&key).await?;
    Ok(Report {
        preserve_ref: kept.map(|kept| kept.reference),
        ..Report::default()
    })
}

/// Frees locks whose attempt does not run any more.
async fn free_orphans(shop: &Shop, context: &Context) -> Result<(), Trouble> {
    let query = Query::new().equal("state", LeaseState::Granted.as_str());
    for lease in context.store.list::<Lease>(query).await? {
        let holder = &lease.holder;
        if !shop.crowd.was_ours(&holder.loop_name) || shop.signals.is_running(holder.attempt) {
            continue;
        }
        let mut changes = ChangeSet::new();
        changes.expire(&lease.path, lease.token);
        match context.store.commit(changes).await {
            Ok(_) | Err(CommitError::Fenced { .. } | CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The time that the program did not run is no working time.
async fn stop_the_clock(context: &Context, build: &Versioned<Build>) -> Result<(), Trouble> {
    if build.working_since.is_none() {
        return Ok(());
    }
    let after = Build {
        working_since: None,
        ..build.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(build, &after);
    match context.store.commit(changes).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A branch that cannot be published now is tried again by the steward; it keeps nobody from starting.
async fn catch_up(shop: &Shop, context: &Context, build: &Build) {
    if let Err(trouble) = publish::publish(shop, context, build.id).await {
        warn!(build.id = %build.id, "`{}` is not published yet: {trouble}", build.branch);
    }
    if let Err(trouble) = tasks_file::write(shop, context, build.id).await {
        warn!(build.id = %build.id, "tasks.md is not up to date: {trouble}");
    }
}
