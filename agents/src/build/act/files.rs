//! Moves the ownership of files between builds.

use ropewalk_bus::{locks, ownership};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::{BuildMerged, ChangeDecided};
use ropewalk_schemas::task::{ChangeRequestState, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use ropewalk_store::ChangeSet;

use super::control;
use crate::build::Shop;
use crate::build::ask;
use crate::build::context;
use crate::build::ending;
use crate::build::land;
use crate::build::obstacles::close_requests;
use crate::build::settle::go;
use crate::build::trouble::Trouble;

/// Notes a merge; from then on the build owns nothing. Whose files they were stays known: the next owner builds on it.
pub(super) async fn merged(context: &Context, merge: &BuildMerged) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(build) = context::build(&context.store, merge.build_id).await? else {
        return Ok(changes);
    };
    if build.merged.is_none() {
        let after = Build {
            merged: Some(merge.commit_id.clone()),
            ..build.record.clone()
        };
        changes.update(&build, &after);
    }
    land::disown(context, &mut changes, merge.build_id).await?;
    Ok(changes)
}

/// Does what an owner decided about a file. Whoever owns it no longer decides nothing: the task looks anew, and asks the
/// owner that there is now.
pub(super) async fn decided(
    shop: &Shop,
    context: &Context,
    decision: &ChangeDecided,
) -> Result<ChangeSet, Trouble> {
    let (build, task, file) = (decision.build_id, &decision.task_id, &decision.file);
    let owner = ownership::owner_of(&context.store, file).await?;
    let owns = owner.is_some_and(|owner| owner.row.build == decision.owner);
    match (owns, decision.approved) {
        (true, true) => hand_over(shop, context, build, task, file, &decision.reason).await,
        (true, false) => deny(context, build, task, file, &decision.reason).await,
        (false, _) => ask_anew(context, decision).await,
    }
}

async fn ask_anew(context: &Context, decision: &ChangeDecided) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let row = context::task(&context.store, decision.build_id, &decision.task_id).await?;
    let Some(row) = row.filter(|row| row.state == TaskState::Waiting) else {
        return Ok(changes);
    };
    let mut after = row.record.clone();
    for request in &mut after.change_requests {
        let same = request.owner == decision.owner && request.file.key() == decision.file.key();
        if same && request.state == ChangeRequestState::Requested {
            request.state = ChangeRequestState::Needless;
            request.reason = Some("the file has another owner".to_owned());
            request.decided_at = Some(context.now());
        }
    }
    if after.waiting_for == Some(WaitReason::Owner) {
        let file = &decision.file;
        control::make_ready(&mut after, &format!("ready; `{file}` has another owner"));
        ending::stop_waiting(context, &mut changes, &row).await?;
    }
    changes.update(&row, &after);
    Ok(changes)
}

/// Gives a file to the build that asked, which builds on what the owner has landed; an attempt that holds the file is
/// ended with its work kept. Only a task that still waits gets it, and only once.
pub(super) async fn hand_over(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    file: &RepoPath,
    reason: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::task(&context.store, build, task).await? else {
        return Ok(changes);
    };
    if row.state != TaskState::Waiting {
        return Ok(changes);
    }
    let held = locks::held_on(&context.store, std::slice::from_ref(file)).await?;
    for lease in held.iter().filter(|lease| lease.holder.build != build) {
        let holder = &lease.holder;
        let (from, by) = (holder.build, &holder.task);
        changes.merge(control::interrupt(shop, context, from, by, reason).await?);
    }
    let owner = ownership::owner_of(&context.store, file).await?;
    ownership::give(&mut changes, build, file, owner.as_ref(), context.now());
    let mut after = row.record.clone();
    close_requests(
        &mut after,
        Some(file),
        ChangeRequestState::Approved,
        reason,
        context.now(),
    );
    ask::supersede(context, &mut changes, &row, "the file was handed over").await?;
    control::make_ready(
        &mut after,
        &format!("ready; `{file}` was handed over: {reason}"),
    );
    ending::stop_waiting(context, &mut changes, &row).await?;
    changes.update(&row, &after);
    Ok(changes)
}

/// Leaves the file with its owner; the task is blocked with that reason until people say otherwise.
async fn deny(
    context: &Context,
    build: BuildId,
    task: &TaskId,
    file: &RepoPath,
    reason: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::task(&context.store, build, task).await? else {
        return Ok(changes);
    };
    if row.state != TaskState::Waiting {
        return Ok(changes);
    }
    let mut after = row.record.clone();
    close_requests(
        &mut after,
        Some(file),
        ChangeRequestState::Rejected,
        reason,
        context.now(),
    );
    go(&mut after, TaskState::Blocked);
    after.waiting_for = None;
    after.waits_since = None;
    after.reason = Some(format!("the file stays with its owner: {reason}"));
    ending::stop_waiting(context, &mut changes, &row).await?;
    ask::supersede(context, &mut changes, &row, "the change was refused").await?;
    changes.update(&row, &after);
    Ok(changes)
}
