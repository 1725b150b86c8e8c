//! Finds what stands between a task and its files: owners of other builds, and locks.

use chrono::{DateTime, Utc};
use ropewalk_coordination::locks::{self, LockConflict, LockRequest};
use ropewalk_coordination::ownership::{self, FileRequest, Owner};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Predecessor;
use ropewalk_schemas::lease::{Lease, Ownership};
use ropewalk_schemas::payload::ConflictDetected;
use ropewalk_schemas::task::{ChangeRequestState, Task};
use ropewalk_schemas::wait::{Party, Wait};
use ropewalk_schemas::{BuildId, Event, Payload, RepoPath, Subject, TaskId};
use ropewalk_store::{ChangeSet, Versioned, path_key};

use crate::error::BuilderError;
use crate::machine::task::{Files, Input};

/// What stands between a task and its files; nothing, when it may take them.
pub(crate) struct Obstacles {
    request: LockRequest,
    /// Every file with its last owner, as it was judged.
    files: Vec<(RepoPath, Option<Owner>)>,
    /// The files that other builds own.
    owned: Vec<Owner>,
    /// The files that others have locked, or wait for longer.
    blocked: Vec<LockConflict>,
    leases: Vec<Versioned<Lease>>,
}

impl Obstacles {
    /// Looks at every file that is asked for.
    pub(crate) async fn of(context: &Context, request: LockRequest) -> Result<Self, BuilderError> {
        let store = &context.store;
        let files = owners(context, &request.files).await?;
        let others: Vec<Owner> = files
            .iter()
            .filter_map(|(_, owner)| owner.clone())
            .filter(|owner| owner.keeps_from(request.holder.build))
            .collect();
        let leases = locks::held_on(store, &request.files).await?;
        // Who waits for an owner, maybe for days, keeps nobody from the other files.
        let blocked = if others.is_empty() {
            let waits = locks::lease_waits(store).await?;
            locks::blocked_claim(&request, &leases, &waits)
        } else {
            locks::blocked_extension(&request, &leases)
        };
        Ok(Self {
            request,
            files,
            owned: others,
            blocked,
            leases,
        })
    }

    /// Returns whether the files are free.
    pub(crate) fn is_empty(&self) -> bool {
        self.owned.is_empty() && self.blocked.is_empty()
    }

    /// Makes the asking build the owner of its files; the commit conflicts when one has another owner than was judged.
    /// Answers what has to be built on.
    pub(crate) fn take(&self, changes: &mut ChangeSet, now: DateTime<Utc>) -> Vec<Predecessor> {
        give_all(changes, self.request.holder.build, &self.files, now)
    }

    /// Lists the files that other builds own, with their owners.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&RepoPath, BuildId)> {
        self.owned
            .iter()
            .map(|owner| (&owner.row.path, owner.row.build))
    }

    /// Returns the waits of the task.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        if self.owned.is_empty() {
            return locks::claim_waits(&self.request, &self.blocked);
        }
        let (waiter, since) = (locks::party(&self.request.holder), self.request.since);
        let locked = self
            .blocked
            .iter()
            .map(|each| each.wait(waiter.clone(), since));
        let owned = self.owners().map(|(file, owner)| {
            let holder = &self.request.holder;
            change_request(holder.build, &holder.task, owner, file).wait(since)
        });
        owned.chain(locked).collect()
    }

    /// Demands that what was seen still is so.
    pub(crate) fn require(&self, changes: &mut ChangeSet) {
        for owner in &self.owned {
            changes.require(&owner.row);
        }
        for lease in &self.leases {
            changes.require(lease);
        }
    }

    /// Says what a task waits for.
    pub(crate) fn obstruction(&self) -> Input {
        let owned = self.owned.iter().map(owner_told);
        let told: Vec<String> = owned.chain(locked(&self.blocked, &self.leases)).collect();
        Input::Obstruct {
            by: if self.owned.is_empty() {
                Files::Locked
            } else {
                Files::Owned
            },
            told: format!("waits for {}", told.join(" and ")),
        }
    }
}

/// Reads the last owners of files.
pub(crate) async fn owners(
    context: &Context,
    files: &[RepoPath],
) -> Result<Vec<(RepoPath, Option<Owner>)>, BuilderError> {
    let mut found = Vec::new();
    for file in files {
        found.push((
            file.clone(),
            ownership::owner_of(&context.store, file).await?,
        ));
    }
    Ok(found)
}

/// Makes `build` the owner of files whose last owners were judged; answers what it has to build on, each once.
pub(crate) fn give_all(
    changes: &mut ChangeSet,
    build: BuildId,
    files: &[(RepoPath, Option<Owner>)],
    now: DateTime<Utc>,
) -> Vec<Predecessor> {
    let mut after: Vec<Predecessor> = Vec::new();
    for (file, owner) in files {
        let followed = ownership::give(changes, build, file, owner.as_ref(), now);
        after.extend(followed.filter(|followed| !after.contains(followed)));
    }
    after
}

/// Returns whether an owner was asked for a file and has not let it go: it is not asked twice.
pub(crate) fn is_asked(task: &Task, file: &RepoPath, owner: BuildId) -> bool {
    task.change_requests.iter().any(|request| {
        let same = request.owner == owner && request.file.key() == file.key();
        let stands = matches!(
            request.state,
            ChangeRequestState::Requested | ChangeRequestState::Rejected
        );
        same && stands
    })
}

/// Tells whose a file is, and that its build goes on by nothing but the word of a person, where that is so.
fn owner_told(owner: &Owner) -> String {
    let rests = owner.build.as_ref().filter(|build| build.rests());
    let rests = rests.map_or_else(String::new, |build| format!("the {} ", build.state));
    let Ownership { path, build, .. } = &owner.row.record;
    format!("`{path}`, which {rests}build `{build}` owns")
}

/// Tells who keeps files locked, or was there first.
pub(crate) fn locked<'a>(
    blocked: &'a [LockConflict],
    leases: &'a [Versioned<Lease>],
) -> impl Iterator<Item = String> + 'a {
    blocked.iter().map(|each| {
        let key = path_key(&each.file);
        let held = leases.iter().any(|lease| path_key(&lease.path) == key);
        let does = if held { "holds" } else { "awaits longer" };
        let by = match &each.by {
            Party::Task { task, .. } => format!("task `{task}`"),
            Party::Build { build } => format!("build `{build}`"),
        };
        format!("the lock on `{}`, which {by} {does}", each.file)
    })
}

/// Returns what a task asks of the owner of a file.
pub(crate) fn change_request(
    build: BuildId,
    task: &TaskId,
    owner: BuildId,
    file: &RepoPath,
) -> FileRequest {
    FileRequest {
        build,
        task: task.clone(),
        owner,
        file: file.clone(),
    }
}

/// Tells that a task needs a file which another build owns.
pub(crate) fn conflict(context: &Context, task: &Task, file: &RepoPath, owner: BuildId) -> Event {
    context.event(
        Subject::task(task.build, &task.id),
        Payload::ConflictDetected(ConflictDetected {
            build_id: task.build,
            task_id: task.id.clone(),
            owner: Some(owner),
            file: file.clone(),
        }),
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::decide::fixture::{noon, task};
    use ropewalk_schemas::task::{ChangeRequest, TaskState};

    #[test]
    fn an_owner_that_let_a_file_go_once_is_asked_again() {
        let (owner, other) = (BuildId(Uuid::from_u128(1)), BuildId(Uuid::from_u128(2)));
        let file = RepoPath::parse("src/a.rs").unwrap();
        for (state, expected) in [
            (ChangeRequestState::Requested, true),
            (ChangeRequestState::Rejected, true),
            (ChangeRequestState::Approved, false),
            (ChangeRequestState::Applied, false),
            (ChangeRequestState::Needless, false),
        ] {
            let mut task = task("T-1", TaskState::Ready, &[]);
            task.change_requests.push(ChangeRequest {
                file: file.clone(),
                owner,
                state,
                reason: None,
                requested_at: noon(),
                decided_at: None,
                commit: None,
            });
            assert_eq!(is_asked(&task, &file, owner), expected, "{state:?}");
            assert!(!is_asked(&task, &file, other));
        }
    }
}
