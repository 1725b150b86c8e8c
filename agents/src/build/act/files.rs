//! Moves the ownership of files between builds.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::BuildMerged;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use ropewalk_store::ChangeSet;

use super::control;
use crate::build::Shop;
use crate::build::context::{self, granted_lease, waits_of};
use crate::build::land;
use crate::build::settle::go;
use crate::build::trouble::Trouble;

/// Notes a merge; from then on the build owns nothing.
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

/// Gives a file to the build that asked; an attempt that holds it is ended with its work kept.
pub(super) async fn hand_over(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    file: &RepoPath,
    reason: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    if let Some(lease) = granted_lease(&context.store, file).await?
        && lease.holder.build != build
    {
        let holder = &lease.holder;
        let (from, by) = (holder.build, &holder.task);
        changes.merge(control::interrupt(shop, context, from, by, reason).await?);
    }
    let ownership = Ownership {
        path: file.clone(),
        build,
        since: context.now(),
    };
    changes.put(&ownership);
    if let Some(row) = context::task(&context.store, build, task).await?
        && row.state == TaskState::Waiting
    {
        let mut after = row.record.clone();
        control::make_ready(
            &mut after,
            &format!("ready; `{file}` was handed over: {reason}"),
        );
        for wait in waits_of(&context.store, build, task).await? {
            changes.delete(&wait);
        }
        changes.update(&row, &after);
    }
    Ok(changes)
}

/// Leaves the file with its owner; the task is blocked with that reason until people say otherwise.
pub(super) async fn deny(
    context: &Context,
    build: BuildId,
    task: &TaskId,
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
    go(&mut after, TaskState::Blocked);
    after.waiting_for = None;
    after.reason = Some(format!("the file stays with its owner: {reason}"));
    for wait in waits_of(&context.store, build, task).await? {
        changes.delete(&wait);
    }
    changes.update(&row, &after);
    Ok(changes)
}
