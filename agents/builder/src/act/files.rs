//! Moves the ownership of files between builds.

use ropewalk_coordination::{locks, ownership};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::{BuildMerged, ChangeDecided};
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use ropewalk_store::{ChangeSet, Versioned};

use super::control;
use crate::SharedState;
use crate::context;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::land;
use crate::machine::build;
use crate::machine::task::{Input, close_requests};

/// Notes a merge; from then on the build owns nothing. Whose files they were stays known: the next owner builds on it.
pub(super) async fn merged(
    shared: &SharedState,
    context: &Context,
    merge: &BuildMerged,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some(build) = context::build(&context.store, merge.build_id).await? else {
        return Ok(changes);
    };
    let scene = Scene::new(shared, context, &build);
    let commit = merge.commit_id.clone();
    control::steer(&scene, &mut changes, &build, build::Input::Merge { commit }).await?;
    land::disown(context, &mut changes, merge.build_id).await?;
    Ok(changes)
}

/// Does what an owner decided about a file. Whoever owns it no longer decides nothing: the task looks anew, and asks the
/// owner that there is now.
pub(super) async fn decided(
    shared: &SharedState,
    context: &Context,
    decision: &ChangeDecided,
) -> Result<ChangeSet, BuilderError> {
    let (build, task, file) = (decision.build_id, &decision.task_id, &decision.file);
    let owner = ownership::owner_of(&context.store, file).await?;
    let owns = owner.is_some_and(|owner| owner.row.build == decision.owner);
    match (owns, decision.approved) {
        (true, true) => hand_over(shared, context, build, task, file, &decision.reason).await,
        (true, false) => deny(shared, context, build, task, file, &decision.reason).await,
        (false, _) => ask_anew(shared, context, decision).await,
    }
}

async fn ask_anew(
    shared: &SharedState,
    context: &Context,
    decision: &ChangeDecided,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let (build, task, file) = (decision.build_id, &decision.task_id, &decision.file);
    let Some((build, row)) = asking(context, build, task, file).await? else {
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
        let input = Input::ChangeOwner {
            file: decision.file.clone(),
        };
        let scene = Scene::new(shared, context, &build);
        after = scene.task(&mut changes, &after, input).await?;
    }
    changes.update(&row, &after);
    Ok(changes)
}

/// Loads a task that still waits, or is free since another file came and has asked for this one as well, with its build.
async fn asking(
    context: &Context,
    build: BuildId,
    task: &TaskId,
    file: &RepoPath,
) -> Result<Option<(Versioned<Build>, Versioned<Task>)>, BuilderError> {
    let (build, task) = (
        context::build(&context.store, build).await?,
        context::task(&context.store, build, task).await?,
    );
    let asks = |task: &Versioned<Task>| match task.state {
        TaskState::Waiting => true,
        TaskState::Ready => task.change_requests.iter().any(|request| {
            let is_open = request.state == ChangeRequestState::Requested;
            is_open && request.file.key() == file.key()
        }),
        _ => false,
    };
    Ok(build.zip(task.filter(asks)))
}

/// Gives a file to the build that asked, which builds on what the owner has landed; an attempt that holds the file is
/// ended with its work kept. Only a task that still asks gets it, and only once.
pub(super) async fn hand_over(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    file: &RepoPath,
    reason: &str,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some((row_of_build, row)) = asking(context, build, task, file).await? else {
        return Ok(changes);
    };
    let held = locks::held_on(&context.store, std::slice::from_ref(file)).await?;
    for lease in held.iter().filter(|lease| lease.holder.build != build) {
        let holder = &lease.holder;
        match control::interrupt(shared, context, holder.build, &holder.task, reason).await {
            Ok(interruption) => {
                changes.merge(interruption);
            }
            // It has ended, and its lock is about to.
            Err(BuilderError::Illegal(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let owner = ownership::owner_of(&context.store, file).await?;
    ownership::give(&mut changes, build, file, owner.as_ref(), context.now());
    let input = Input::HandOver {
        file: file.clone(),
        why: reason.to_owned(),
    };
    let scene = Scene::new(shared, context, &row_of_build);
    let mut after = scene.task(&mut changes, &row, input).await?;
    let approved = ChangeRequestState::Approved;
    close_requests(&mut after, Some(file), approved, reason, context.now());
    changes.update(&row, &after);
    Ok(changes)
}

/// Leaves the file with its owner; the task is blocked with that reason until people say otherwise.
async fn deny(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    file: &RepoPath,
    reason: &str,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some((build, row)) = asking(context, build, task, file).await? else {
        return Ok(changes);
    };
    let input = Input::Deny {
        why: reason.to_owned(),
    };
    let scene = Scene::new(shared, context, &build);
    let mut after = scene.task(&mut changes, &row, input).await?;
    let rejected = ChangeRequestState::Rejected;
    close_requests(&mut after, Some(file), rejected, reason, context.now());
    changes.update(&row, &after);
    Ok(changes)
}
