//! Decides which build may touch a file. The owner is a build, never a loop; it ends when the build is merged or
//! abandoned, and it blocks other builds only: inside the owning build a lock is enough.

use chrono::{DateTime, Utc};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::{ChangeDecided, ChangeRequested};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, Payload, RepoPath, Subject, TaskId};
use ropewalk_store::{ChangeSet, Query, ReadError, Store, Versioned, path_key};

use crate::locks::Announce;

/// Says whether a build may touch a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The build owns it.
    Owned,
    /// Nobody owns it: the build becomes its owner.
    Free,
    /// Another build owns it.
    Denied {
        /// That build.
        owner: BuildId,
    },
}

/// Decides for one file.
pub fn decide(build: BuildId, ownership: Option<&Ownership>) -> Access {
    match ownership {
        None => Access::Free,
        Some(ownership) if ownership.build == build => Access::Owned,
        Some(ownership) => Access::Denied {
            owner: ownership.build,
        },
    }
}

/// Decides for a set of files, in their order.
pub fn decide_all<'a>(
    build: BuildId,
    files: &'a [RepoPath],
    owners: &[Versioned<Ownership>],
) -> Vec<(&'a RepoPath, Access)> {
    files
        .iter()
        .map(|file| {
            let key = path_key(file);
            let owner = owners.iter().find(|owner| path_key(&owner.path) == key);
            (file, decide(build, owner.map(|owner| &owner.record)))
        })
        .collect()
}

/// Makes `build` the owner of those of `files` that are free; the commit conflicts when another build was faster.
pub fn claim(
    changes: &mut ChangeSet,
    build: BuildId,
    files: &[RepoPath],
    owners: &[Versioned<Ownership>],
    now: DateTime<Utc>,
) {
    let mut claimed = std::collections::HashSet::new();
    for (file, access) in decide_all(build, files, owners) {
        if access == Access::Free && claimed.insert(path_key(file)) {
            changes.insert(&Ownership {
                path: file.clone(),
                build,
                since: now,
            });
        }
    }
}

/// Gives a file to another build, as PM decides or the owner consents.
pub fn transfer(
    changes: &mut ChangeSet,
    ownership: &Versioned<Ownership>,
    to: BuildId,
    now: DateTime<Utc>,
) {
    let after = Ownership {
        path: ownership.path.clone(),
        build: to,
        since: now,
    };
    changes.update(ownership, &after);
}

/// Ends the ownership of a build that is merged or abandoned.
pub fn release(changes: &mut ChangeSet, owned: &[Versioned<Ownership>]) {
    for ownership in owned {
        changes.delete(ownership);
    }
}

/// Asks the owner of a file for a change.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRequest {
    /// The build that asks.
    pub build: BuildId,
    /// The task that needs it.
    pub task: TaskId,
    /// The build that owns the file.
    pub owner: BuildId,
    /// The file.
    pub file: RepoPath,
    /// What should change.
    pub change: String,
}

impl ChangeRequest {
    /// Files the request with the owner.
    pub fn file(&self, changes: &mut ChangeSet, announce: Announce<'_>) {
        let payload = Payload::ChangeRequested(ChangeRequested {
            build_id: self.build,
            task_id: self.task.clone(),
            owner: self.owner,
            file: self.file.clone(),
            change: self.change.clone(),
        });
        changes.emit(announce(Subject::build(self.owner), payload));
    }

    /// Answers the request; a refusal leaves the task blocked with that reason.
    pub fn answer(
        &self,
        changes: &mut ChangeSet,
        approved: bool,
        reason: &str,
        announce: Announce<'_>,
    ) {
        let payload = Payload::ChangeDecided(ChangeDecided {
            build_id: self.build,
            task_id: self.task.clone(),
            owner: self.owner,
            file: self.file.clone(),
            approved,
            reason: reason.to_owned(),
        });
        changes.emit(announce(Subject::build(self.build), payload));
    }

    /// Returns the wait of the task for the owner.
    pub fn wait(&self, since: DateTime<Utc>) -> Wait {
        Wait {
            waiter: Party::Task {
                build: self.build,
                task: self.task.clone(),
            },
            resource: Resource::Ownership {
                path: self.file.clone(),
            },
            holder: Some(Party::Build { build: self.owner }),
            since,
        }
    }
}

/// Reads who owns any of `files`.
pub async fn owners_of(
    store: &Store,
    files: &[RepoPath],
) -> Result<Vec<Versioned<Ownership>>, ReadError> {
    let mut owners = Vec::new();
    for file in files {
        owners.extend(store.get::<Ownership>(&path_key(file)).await?);
    }
    Ok(owners)
}

/// Reads what a build owns.
pub async fn owned_by(
    store: &Store,
    build: BuildId,
) -> Result<Vec<Versioned<Ownership>>, ReadError> {
    store.list(Query::new().equal("build", build)).await
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn build(number: u128) -> BuildId {
        Uuid::from_u128(number).into()
    }

    fn file(path: &str) -> RepoPath {
        RepoPath::parse(path).unwrap()
    }

    #[test]
    fn a_file_is_free_owned_or_denied_with_its_owner_named() {
        let owners = [Versioned {
            version: 1,
            record: Ownership {
                path: file("types/session.ts"),
                build: build(1),
                since: DateTime::UNIX_EPOCH,
            },
        }];
        let files = [file("utils/new.ts"), file("types/Session.ts")];
        let decided = |asking| -> Vec<Access> {
            decide_all(build(asking), &files, &owners)
                .into_iter()
                .map(|(_, access)| access)
                .collect()
        };
        assert_eq!(decided(1), [Access::Free, Access::Owned]);
        assert_eq!(
            decided(2),
            [Access::Free, Access::Denied { owner: build(1) }]
        );
        let mut changes = ChangeSet::new();
        claim(
            &mut changes,
            build(2),
            &files,
            &owners,
            DateTime::UNIX_EPOCH,
        );
        let claimed = changes.written::<Ownership>();
        assert_eq!(claimed.len(), 1);
        assert_eq!((claimed[0].build, &claimed[0].path), (build(2), &files[0]));
    }
}
