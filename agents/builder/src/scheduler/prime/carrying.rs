//! Takes over what an earlier build landed and an amended specification asks for unchanged, and what it had begun.

use ropewalk_coordination::ownership;
use ropewalk_desk::builds::forerunners;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::amendment::{begun, carried, touched};
use ropewalk_schemas::attempt::{Attempt, Evidence, Verdict};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{ChangeSet, Query, Record, Versioned, revision_key};
use tracing::info;

use crate::SharedState;
use crate::context::{Plan, attempts_at, consents};
use crate::error::BuilderError;
use crate::machine::task::{Input, apply_alone};

/// Says that the build has to wait: something of one before still runs, and may land.
pub(super) async fn waits(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<bool, BuilderError> {
    if build.head.is_some() {
        return Ok(false);
    }
    for before in forerunners(&context.store, build).await? {
        if before.gives_way() {
            return Ok(true);
        }
        // What was ended is still being kept.
        let attempts = of_build::<Attempt>(context, before.id).await?;
        let mut running = attempts.iter().map(|attempt| attempt.id);
        if running.any(|attempt| shared.signals.is_running(attempt)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes over what is done, with its evidence and the files it owns; of the rest the next attempts find what was begun.
pub(super) async fn carry(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<(), BuilderError> {
    let forerunners = forerunners(&context.store, build).await?;
    let Some(before) = forerunners.last().map(|before| before.id) else {
        return Ok(());
    };
    let (Some(old), Some(new)) = (
        Plan::load(&context.store, before).await?,
        Plan::load(&context.store, build.id).await?,
    ) else {
        return Ok(());
    };
    let revision = async |number| {
        let key = revision_key(build.spec, number);
        context.store.get::<Revision>(&key).await
    };
    let (earlier, now) = (
        revision(old.build.revision).await?,
        revision(build.revision).await?,
    );
    let touched = earlier
        .zip(now)
        .map(|(earlier, now)| touched(&earlier.document, &now.document))
        .unwrap_or_default();
    let done_before = old.records();
    let mut changes = ChangeSet::new();
    let mut kept: Vec<&Task> = Vec::new();
    let fresh = new.tasks.iter().filter(|row| {
        row.state == TaskState::Pending && row.attempts == 0 && row.resume_from.is_none()
    });
    for row in fresh {
        let input = if let Some(done) = carried(&row.block, &done_before, &touched) {
            kept.push(done);
            Input::Carry {
                commit: done.commit.clone(),
                at: done.completed_at.unwrap_or_else(|| context.now()),
                attempts: done.attempts,
            }
        } else if let Some(task) = begun(&row.block, &done_before) {
            let work = work_of(shared, context, task).await?;
            // Who approved the amended task may have allowed what was refused before, and is asked anew where not.
            let guidance = consents::said_beside_refusals(&context.store, task).await?;
            let has_more_to_tell = row.guidance.is_empty() && !guidance.is_empty();
            if work.is_none() && !has_more_to_tell {
                continue;
            }
            Input::TakeUp { work, guidance }
        } else {
            continue;
        };
        changes.update(row, &apply_alone(row, input, context.now())?);
    }
    carry_evidence(context, &mut changes, (before, build.id), &kept).await?;
    for before in &forerunners {
        carry_ownership(context, &mut changes, (before.id, build.id)).await?;
    }
    if !changes.is_empty() {
        context.store.commit(changes).await?;
        info!(build.id = %build.id, "build `{}` keeps {} of {} tasks of build `{before}`",
            build.id, kept.len(), old.tasks.len());
    }
    Ok(())
}

/// Finds what was made of a task last; an attempt that made nothing leaves what lay there before.
async fn work_of(
    shared: &SharedState,
    context: &Context,
    task: &Task,
) -> Result<Option<CommitId>, BuilderError> {
    let attempts = attempts_at(&context.store, task.build, &task.id).await?;
    for attempt in attempts.iter().rev() {
        let kept = match &attempt.preserve_ref {
            Some(reference) => shared.clone.resolve(reference).await?,
            None => None,
        };
        let Some(made) = kept.or_else(|| attempt.candidate.clone()) else {
            continue;
        };
        // One that handed in nothing, or gave up, is kept as well.
        let changed = shared
            .clone
            .changed_files(attempt.base.as_str(), made.as_str());
        if !changed.await?.is_empty() {
            return Ok(Some(made));
        }
    }
    Ok(None)
}

/// What was seen of carried work is seen for the new build too, so that each of its tasks shows its evidence.
async fn carry_evidence(
    context: &Context,
    changes: &mut ChangeSet,
    (before, build): (BuildId, BuildId),
    kept: &[&Task],
) -> Result<(), BuilderError> {
    for seen in of_build::<Evidence>(context, before).await? {
        let mut tasks = kept
            .iter()
            .filter(|task| Some(&task.id) == seen.task.as_ref());
        let landed = tasks.any(|task| {
            task.commit
                .as_ref()
                .is_none_or(|commit| *commit == seen.commit)
        });
        if landed && seen.verdict == Verdict::Passed {
            changes.put(&Evidence { build, ..seen });
        }
    }
    Ok(())
}

async fn carry_ownership(
    context: &Context,
    changes: &mut ChangeSet,
    (before, build): (BuildId, BuildId),
) -> Result<(), BuilderError> {
    let owned = ownership::owned_by(&context.store, before).await?;
    // What ended with a merge stays ended: whoever changes such a file next takes it anew.
    for owned in owned.iter().filter(|owned| !owned.ended) {
        let after = Ownership {
            build,
            ..owned.record.clone()
        };
        changes.update(owned, &after);
    }
    Ok(())
}

async fn of_build<Row: Record>(
    context: &Context,
    build: BuildId,
) -> Result<Vec<Row>, BuilderError> {
    let query = Query::new().equal("build", build.to_string());
    let rows = context.store.list::<Row>(query).await?;
    Ok(rows.into_iter().map(Versioned::into_inner).collect())
}
