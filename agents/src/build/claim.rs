//! Claims a task: its locks, its files, its attempt and its new state in one transaction, or nothing.

use std::collections::BTreeMap;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::{Holder, Lease, LeaseState, Ownership};
use ropewalk_schemas::payload::{ChangeRequested, ConflictDetected};
use ropewalk_schemas::task::{Action, Task, TaskState, WaitReason};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, BuildId, CommitId, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};

use super::Shop;
use super::context::{CONFLICTS, Plan, builds_in, granted_lease, of_build, owner_of, waits_of};
use super::decide::order::claimable;
use super::decide::step::stop_reason;
use super::settle::go;
use super::trouble::Trouble;

/// A claimed task.
pub(crate) struct Claim {
    pub(crate) build: Build,
    pub(crate) task: Task,
    pub(crate) attempt: Attempt,
    /// The commit it works from.
    pub(crate) base: CommitId,
    /// The locked files with their tokens.
    pub(crate) locks: BTreeMap<RepoPath, i64>,
    /// The try as the script and the journal count it: interrupted attempts are run again under their own number.
    pub(crate) round: u32,
}

/// Claims the most fitting task that is free; none when there is nothing to do.
pub(crate) async fn next(shop: &Shop, context: &Context) -> Result<Option<Claim>, Trouble> {
    for _ in 0..CONFLICTS {
        match look(shop, context).await? {
            Look::Claimed(claim) => return Ok(Some(*claim)),
            Look::Nothing => return Ok(None),
            // What was seen has changed meanwhile; nobody would call again for what is there now.
            Look::Overtaken => {}
        }
    }
    Ok(None)
}

/// What came of one look at the tasks.
enum Look {
    Claimed(Box<Claim>),
    /// Nothing is free.
    Nothing,
    /// Something was free, and somebody else changed what the claim rests on.
    Overtaken,
}

async fn look(shop: &Shop, context: &Context) -> Result<Look, Trouble> {
    let mut found = Look::Nothing;
    for build in builds_in(&context.store, &[BuildState::Running]).await? {
        if build.pause_requested || build.exhausted.is_some() || build.head.is_none() {
            continue;
        }
        let Some(plan) = Plan::load(&context.store, build.id).await? else {
            continue;
        };
        let tasks = plan.records();
        // The steward will stop this build; until then nothing new begins.
        if stop_reason(&plan.build, &tasks, &shop.options.stop, context.now()).is_some() {
            shop.signals.ring_steward();
            continue;
        }
        for task in claimable(&tasks, context.source(), context.now()) {
            let Some(task) = plan.tasks.iter().find(|row| row.id == task.id) else {
                continue;
            };
            match attempt(shop, context, &plan.build, task).await? {
                Look::Nothing => {}
                Look::Overtaken => found = Look::Overtaken,
                claimed @ Look::Claimed(_) => return Ok(claimed),
            }
        }
    }
    Ok(found)
}

/// What stands between a task and its files.
enum Obstacle {
    Owner(RepoPath, BuildId),
    Lock(RepoPath, Holder),
}

async fn attempt(
    shop: &Shop,
    context: &Context,
    build: &Versioned<Build>,
    task: &Versioned<Task>,
) -> Result<Look, Trouble> {
    let Some(base) = build.head.clone() else {
        return Ok(Look::Nothing);
    };
    if build.state != BuildState::Running || build.pause_requested || build.exhausted.is_some() {
        return Ok(Look::Nothing);
    }
    let context = of_build(context, build);
    let files = locked_files(task);
    let obstacles = obstacles(&context, build.id, &files).await?;
    if !obstacles.is_empty() {
        wait(&context, build, task, &obstacles).await?;
        return Ok(Look::Nothing);
    }
    let round = round(&context, task).await?;
    let (changes, claimed, attempt) =
        claim(shop, &context, build, task, &files, base.clone()).await?;
    match context.store.commit(changes).await {
        Ok(committed) => {
            let token = committed.token.unwrap_or_default();
            Ok(Look::Claimed(Box::new(Claim {
                build: build.record.clone(),
                task: claimed,
                attempt: Attempt { token, ..attempt },
                base,
                locks: files.into_iter().map(|file| (file, token)).collect(),
                round,
            })))
        }
        // Somebody was faster; the next look sees what is left.
        Err(CommitError::Conflict { .. } | CommitError::Held { .. }) => Ok(Look::Overtaken),
        Err(error) => Err(error.into()),
    }
}

/// A task that only verifies writes nothing and so locks nothing.
pub(crate) fn locked_files(task: &Task) -> Vec<RepoPath> {
    if task.block.action == Action::Verify {
        return Vec::new();
    }
    let mut files: Vec<RepoPath> = task.block.files().cloned().collect();
    files.sort_by_key(RepoPath::key);
    files.dedup_by_key(|file| file.key());
    files
}

async fn obstacles(
    context: &Context,
    build: BuildId,
    files: &[RepoPath],
) -> Result<Vec<Obstacle>, Trouble> {
    let mut found = Vec::new();
    for file in files {
        if let Some(owned) = owner_of(&context.store, file).await?
            && owned.live
            && owned.row.build != build
        {
            found.push(Obstacle::Owner(file.clone(), owned.row.build));
        } else if let Some(lease) = granted_lease(&context.store, file).await? {
            found.push(Obstacle::Lock(file.clone(), lease.holder.clone()));
        }
    }
    Ok(found)
}

/// Lets the task wait, visibly, for whoever holds what it needs.
async fn wait(
    context: &Context,
    build: &Build,
    task: &Versioned<Task>,
    obstacles: &[Obstacle],
) -> Result<(), Trouble> {
    let mut changes = ChangeSet::new();
    let mut waiting = task.record.clone();
    go(&mut waiting, TaskState::Waiting);
    let mut told = Vec::new();
    waiting.waiting_for = Some(WaitReason::Lock);
    for obstacle in obstacles {
        let (resource, holder) = match obstacle {
            Obstacle::Owner(path, owner) => {
                waiting.waiting_for = Some(WaitReason::Owner);
                told.push(format!("`{path}`, which build `{owner}` owns"));
                contest(context, &mut changes, build, task, path, *owner);
                let resource = Resource::Ownership { path: path.clone() };
                (resource, Party::Build { build: *owner })
            }
            Obstacle::Lock(path, holder) => {
                told.push(format!(
                    "the lock on `{path}`, which task `{}` holds",
                    holder.task
                ));
                let resource = Resource::Lease { path: path.clone() };
                let holder = Party::Task {
                    build: holder.build,
                    task: holder.task.clone(),
                };
                (resource, holder)
            }
        };
        changes.put(&Wait {
            waiter: Party::Task {
                build: task.build,
                task: task.id.clone(),
            },
            resource,
            holder: Some(holder),
            since: context.now(),
        });
    }
    waiting.reason = Some(format!("waits for {}", told.join(" and ")));
    changes.update(task, &waiting);
    match context.store.commit(changes).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Files a change request with the owner and lets PM know that two builds want one file.
fn contest(
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: &Task,
    file: &RepoPath,
    owner: BuildId,
) {
    let subject = Subject::task(build.id, &task.id);
    changes.emit(context.event(
        subject.clone(),
        Payload::ChangeRequested(ChangeRequested {
            build_id: build.id,
            task_id: task.id.clone(),
            owner,
            file: file.clone(),
            change: format!("task `{}` of `{}` needs it", task.id, build.idea),
        }),
    ));
    changes.emit(context.event(
        subject,
        Payload::ConflictDetected(ConflictDetected {
            build_id: build.id,
            task_id: task.id.clone(),
            owner: Some(owner),
            file: file.clone(),
        }),
    ));
}

/// Counts the attempts that came to an end of their own, and this one.
async fn round(context: &Context, task: &Task) -> Result<u32, Trouble> {
    let query = Query::new()
        .equal("build", task.build.to_string())
        .equal("task", task.id.as_str());
    let attempts = context.store.list::<Attempt>(query).await?;
    let ended = attempts
        .iter()
        // An interruption with a reason was meant to end what was tried; a crash was not.
        .filter(|attempt| attempt.state == AttemptState::Failed || attempt.failure.is_some())
        .count();
    Ok(u32::try_from(ended).unwrap_or(u32::MAX - 1) + 1)
}

async fn claim(
    shop: &Shop,
    context: &Context,
    build: &Versioned<Build>,
    task: &Versioned<Task>,
    files: &[RepoPath],
    base: CommitId,
) -> Result<(ChangeSet, Task, Attempt), Trouble> {
    let now = context.now();
    let mut changes = ChangeSet::new();
    // A pause, a stop or a landing in between makes this claim void.
    changes.require(build);
    let attempt = Attempt {
        id: AttemptId(context.ids.next()),
        build: build.id,
        task: task.id.clone(),
        number: task.attempts + 1,
        loop_name: context.source().clone(),
        state: AttemptState::Working,
        token: 0,
        base,
        candidate: None,
        preserve_ref: None,
        granted: Vec::new(),
        gotchas: Vec::new(),
        failure: None,
        summary: None,
        tokens: 0,
        started_at: now,
        ended_at: None,
    };
    let mut claimed = task.record.clone();
    go(&mut claimed, TaskState::Claimed);
    claimed.attempt = Some(attempt.id);
    claimed.attempts = attempt.number;
    claimed.claimed_at = Some(now);
    claimed.progress_at = Some(now);
    claimed.reason = None;
    claimed.waiting_for = None;
    claimed.not_before = None;
    claimed.assigned_to = None;
    changes.update(task, &claimed);
    changes.insert(&attempt);
    let holder = Holder {
        build: build.id,
        task: task.id.clone(),
        attempt: attempt.id,
        loop_name: context.source().clone(),
    };
    for file in files {
        changes.grant(lease(shop, file, holder.clone(), &claimed, now));
        own(context, &mut changes, build.id, file).await?;
    }
    for wait in waits_of(&context.store, build.id, &task.id).await? {
        changes.delete(&wait);
    }
    Ok((changes, claimed, attempt))
}

/// Makes a lease for `holder` on `file`.
pub(crate) fn lease(
    shop: &Shop,
    file: &RepoPath,
    holder: Holder,
    task: &Task,
    now: chrono::DateTime<chrono::Utc>,
) -> Lease {
    Lease {
        path: file.clone(),
        holder,
        state: LeaseState::Granted,
        token: 0,
        renewals: 0,
        ttl_ms: u64::try_from(shop.options.lease.as_millis()).unwrap_or(u64::MAX),
        reason: format!("task {} of {}", task.id, task.build),
        granted_at: now,
    }
}

/// Writes down that the build owns the file, unless it does already.
pub(crate) async fn own(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    file: &RepoPath,
) -> Result<(), Trouble> {
    let ownership = Ownership {
        path: file.clone(),
        build,
        since: context.now(),
    };
    match owner_of(&context.store, file).await? {
        None => {
            changes.insert(&ownership);
        }
        Some(owned) if owned.row.build != build => {
            changes.update(&owned.row, &ownership);
        }
        Some(_) => {}
    }
    Ok(())
}
