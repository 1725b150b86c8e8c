//! Sets right what a crash left behind, before the first event is taken.

use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::decide::{Verdict, verdict};
use ropewalk_orchestrator::deaths::{Suspects, times};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::task::Task;
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned, retry_on_conflict};
use ropewalk_workspace::PreserveKey;
use tracing::{info, warn};

use super::work::Work;
use super::{chores, deadly, publish, tasks_file};
use crate::SharedState;
use crate::attempt::ending::{self, Fault};
use crate::attempt::report::{self, Report};
use crate::attempt::rows::Rows;
use crate::context::builds_in;
use crate::error::BuilderError;

/// Keeps the work of attempts that died, frees what they held, puts their tasks back, publishes what landed.
///
/// Where other processes build too, only what an earlier process in this one's place left is known to be dead; the rest
/// is judged by its signs of life (`lease_reaper`).
pub(crate) async fn run(shared: &SharedState, context: &Context) -> Result<(), BuilderError> {
    keep_work(shared, context).await?;
    failpoint!("build.recover.slots");
    for attempt in open_attempts(context).await? {
        if !shared.processes.was_ours(&attempt.loop_name) {
            continue;
        }
        if !park(shared, context, &attempt).await? {
            let reason = "the program was ended while it ran";
            put_back(shared, context, &attempt, reason).await?;
        }
    }
    let_go_of_what_is_over(context).await?;
    deadly::set_aside(shared, context).await?;
    failpoint!("build.recover.attempts");
    free_orphans(shared, context).await?;
    failpoint!("build.recover.locks");
    for build in builds_in(&context.store, BuildState::ALL).await? {
        if shared.processes.is_alone() {
            stop_the_clock(context, &build).await?;
        }
        if build.head != build.published && deadly::may_catch_up(context, &build) {
            catch_up(shared, context, &build).await;
        }
    }
    Ok(())
}

/// Keeps what the dead left in their slots, and notes with each attempt where; slots of the living are theirs.
pub(super) async fn keep_work(shared: &SharedState, context: &Context) -> Result<(), BuilderError> {
    for work in shared.slots.recover(context.now()).await? {
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
            report::kept(context, row.id, &report).await?;
        }
    }
    Ok(())
}

/// Asks a person about the task of an attempt that the program died of too often; false when it did not.
async fn park(
    shared: &SharedState,
    context: &Context,
    attempt: &Attempt,
) -> Result<bool, BuilderError> {
    let suspects = context.registry.suspects();
    let suspect = Suspects::task(attempt.build, &attempt.task);
    let Some(deaths) = suspects.deaths(&suspect) else {
        return Ok(false);
    };
    let ids = (attempt.build, &attempt.task, attempt.id);
    let runs = Rows::load(context, ids.0, ids.1, ids.2).await?.is_some();
    if verdict(deaths.count) != Verdict::Parked || !runs {
        return Ok(false);
    }
    let error = format!(
        "the program ended {} in a row while this task was in hand, each time at the same place or before; \
         a command of its check, or a file that it made, may end whatever runs it",
        times(deaths.count)
    );
    let report = left_behind(shared, attempt).await?;
    let fault = Fault::new(FailureClass::Interrupted, error);
    ending::failed(shared, context, ids, &fault, &report).await?;
    suspects.let_go(&suspect, &context.store).await;
    warn!(task.id = %attempt.task, "`{}` is not run again before somebody said so", attempt.task);
    Ok(true)
}

/// Forgets deaths of tasks and of work on builds that will not run again: nothing has to wait for them.
async fn let_go_of_what_is_over(context: &Context) -> Result<(), BuilderError> {
    let suspects = context.registry.suspects();
    for deaths in suspects.alone() {
        let Some(task) = deaths.entity.strip_prefix("task/") else {
            continue;
        };
        let row = context.store.get::<Task>(task).await?;
        if row.is_none_or(|task| task.state.is_final()) {
            suspects.let_go(&deaths.entity, &context.store).await;
        }
    }
    deadly::let_go_of_what_is_over(context).await
}

pub(super) async fn open_attempts(
    context: &Context,
) -> Result<Vec<Versioned<Attempt>>, BuilderError> {
    let open = AttemptState::ALL
        .iter()
        .filter(|state| !state.is_final())
        .map(|state| state.as_str());
    let query = Query::new().one_of("state", open);
    Ok(context.store.list::<Attempt>(query).await?)
}

/// Puts the task of an attempt back whose process is gone.
pub(super) async fn put_back(
    shared: &SharedState,
    context: &Context,
    attempt: &Attempt,
    reason: &str,
) -> Result<(), BuilderError> {
    if shared.signals.is_running(attempt.id) {
        return Ok(());
    }
    let report = left_behind(shared, attempt).await?;
    retry_on_conflict!(BuilderError, &attempt.task, {
        let mut changes = ChangeSet::new();
        let rows = Rows::load(context, attempt.build, &attempt.task, attempt.id).await?;
        if let Some(rows) = rows {
            ending::requeue(shared, context, &mut changes, &rows, reason, None, &report).await?;
        } else {
            // The task went on without it; only its own row is left open.
            let key = attempt.id.to_string();
            let Some(row) = context.store.get::<Attempt>(&key).await? else {
                return Ok(Some(()));
            };
            let after = Attempt {
                state: AttemptState::Interrupted,
                ended_at: Some(context.now()),
                ..row.record.clone()
            };
            changes.update(&row, &after);
        }
        context.store.commit(changes).await?;
        let (task, number) = (&attempt.task, attempt.number);
        info!(task.id = %task, "attempt {number} at `{task}` was cut off and is run again");
        Ok(Some(()))
    })
}

/// Says where the work of an attempt is that cannot say it itself any more.
pub(super) async fn left_behind(
    shared: &SharedState,
    attempt: &Attempt,
) -> Result<Report, BuilderError> {
    let key = PreserveKey {
        build: attempt.build,
        task: attempt.task.clone(),
        attempt: attempt.number,
    };
    let kept = shared.clone.kept(&key).await?;
    Ok(Report {
        preserve_ref: kept.map(|kept| kept.reference),
        ..Report::default()
    })
}

/// Frees locks whose attempt does not run any more.
async fn free_orphans(shared: &SharedState, context: &Context) -> Result<(), BuilderError> {
    let query = Query::new().equal("state", LeaseState::Granted.as_str());
    for lease in context.store.list::<Lease>(query).await? {
        let holder = &lease.holder;
        if !shared.processes.was_ours(&holder.loop_name)
            || shared.signals.is_running(holder.attempt)
        {
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
async fn stop_the_clock(context: &Context, build: &Versioned<Build>) -> Result<(), BuilderError> {
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

/// A branch that cannot be published now is tried again by the scheduler; it keeps nobody from starting.
async fn catch_up(shared: &SharedState, context: &Context, build: &Build) {
    let piece = (build.id, Work::Publication);
    let publication = publish::publish(shared, context, build.id);
    if let Err(error) = chores::in_hand(context, piece, Box::pin(publication)).await {
        warn!(build.id = %build.id, "`{}` is not published yet: {error}", build.branch);
    }
    if let Err(error) = tasks_file::write(shared, context, build.id).await {
        warn!(build.id = %build.id, "tasks.md is not up to date: {error}");
    }
}
