//! Says which build may touch a file. The owner is a build, never a loop; it ends when the build is merged or
//! abandoned, and it blocks other builds only: inside the owning build a lock is enough.
//!
//! Whoever gets a file after another build has to build on what that one did to it: the row says on which commit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use chrono::{DateTime, Utc};
use ropewalk_schemas::build::{Build, Predecessor, StopCause};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::{ChangeDecided, ChangeRequested};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, Payload, RepoPath, Subject, TaskId};
use ropewalk_store::{ChangeSet, Query, ReadError, Store, Versioned, path_key};

use crate::locks::Announce;

/// The last owner of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// Its ownership.
    pub row: Versioned<Ownership>,
    /// The build, as far as it is known.
    pub build: Option<Versioned<Build>>,
}

/// Returns whether a build owns what it was given: it is neither merged nor abandoned. One that failed or was stopped
/// may come back, and finds its files as it left them.
fn owns(build: &Build) -> bool {
    build.merged.is_none() && build.stop != Some(StopCause::Abandoned)
}

impl Owner {
    /// Returns whether the build still owns the file.
    pub fn is_live(&self) -> bool {
        !self.row.ended && self.build.as_ref().is_some_and(|build| owns(build))
    }

    /// Returns whether the file is kept from `build`.
    pub fn keeps_from(&self, build: BuildId) -> bool {
        self.row.build != build && self.is_live()
    }

    /// Returns what `build` has to build on when it changes the file.
    pub fn leaves_to(&self, build: BuildId) -> Option<Predecessor> {
        if self.row.build == build {
            self.row.after.clone()
        } else {
            self.leaves()
        }
    }

    /// Returns what the next owner has to build on; nothing of a build that was abandoned.
    fn leaves(&self) -> Option<Predecessor> {
        let of_owner = self.build.as_ref().and_then(|build| {
            let counts = build.merged.is_some() || self.is_live();
            build
                .head
                .clone()
                .filter(|_| counts)
                .map(|commit| Predecessor {
                    build: build.id,
                    commit,
                })
        });
        of_owner.or_else(|| self.row.after.clone())
    }
}

/// Makes `build` the owner of a file; answers what it has to build on.
///
/// A living owner must have given its consent, or have to give way; the commit conflicts when it lands meanwhile, or
/// when another build was faster.
pub fn give(
    changes: &mut ChangeSet,
    build: BuildId,
    file: &RepoPath,
    owner: Option<&Owner>,
    now: DateTime<Utc>,
) -> Option<Predecessor> {
    let mut ownership = Ownership {
        path: file.clone(),
        build,
        since: now,
        ended: false,
        after: None,
    };
    let Some(owner) = owner else {
        changes.insert(&ownership);
        return None;
    };
    if owner.row.build == build {
        // It may have been handed over meanwhile.
        changes.require(&owner.row);
        return owner.row.after.clone();
    }
    if let Some(build) = owner.build.as_ref().filter(|_| owner.is_live()) {
        changes.require(build);
    }
    ownership.after = owner.leaves();
    changes.update(&owner.row, &ownership);
    ownership.after
}

/// Ends the ownership of a build that is merged. Whose the files were stays known until they have a new owner.
pub fn end(changes: &mut ChangeSet, owned: &[Versioned<Ownership>]) {
    for ownership in owned {
        let ended = Ownership {
            ended: true,
            ..ownership.record.clone()
        };
        changes.update(ownership, &ended);
    }
}

/// Forgets the ownership of a build that is abandoned.
pub fn abandon(changes: &mut ChangeSet, owned: &[Versioned<Ownership>]) {
    for ownership in owned {
        changes.delete(ownership);
    }
}

/// Asks the owner of a file for a change.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRequest {
    /// The build that asks.
    pub build: BuildId,
    /// The task that needs it.
    pub task: TaskId,
    /// The build that owns the file.
    pub owner: BuildId,
    /// The file.
    pub file: RepoPath,
}

impl FileRequest {
    /// Files the request with the owner.
    pub fn file(&self, changes: &mut ChangeSet, change: &str, announce: Announce<'_>) {
        let payload = Payload::ChangeRequested(ChangeRequested {
            build_id: self.build,
            task_id: self.task.clone(),
            owner: self.owner,
            file: self.file.clone(),
            change: change.to_owned(),
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

/// Reads the last owner of a file.
pub async fn owner_of(store: &Store, file: &RepoPath) -> Result<Option<Owner>, ReadError> {
    let Some(row) = store.get::<Ownership>(&path_key(file)).await? else {
        return Ok(None);
    };
    let build = store.get::<Build>(&row.build.to_string()).await?;
    Ok(Some(Owner { row, build }))
}

/// Reads the build that goes on last from another: a later revision, or itself where there is none.
pub async fn successor_of(
    store: &Store,
    build: BuildId,
) -> Result<Option<Versioned<Build>>, ReadError> {
    let mut last = store.get::<Build>(&build.to_string()).await?;
    while let Some(later) = last.as_ref().and_then(|build| build.continued_by)
        && let Some(later) = store.get::<Build>(&later.to_string()).await?
    {
        last = Some(later);
    }
    Ok(last)
}

/// Lists the files that a build keeps from others, by path.
pub async fn kept_by(store: &Store, build: &Build) -> Result<Vec<RepoPath>, ReadError> {
    if !owns(build) {
        return Ok(Vec::new());
    }
    let owned = owned_by(store, build.id).await?.into_iter();
    let kept = owned.filter(|row| !row.ended).map(|row| row.record.path);
    let mut kept: Vec<RepoPath> = kept.collect();
    kept.sort();
    Ok(kept)
}

/// Lists every file that a build keeps from others, with the build.
pub async fn live(store: &Store) -> Result<Vec<(RepoPath, Build)>, ReadError> {
    let mut builds: BTreeMap<BuildId, Option<Build>> = BTreeMap::new();
    let mut live = Vec::new();
    for row in store.list::<Ownership>(Query::new()).await? {
        if row.ended {
            continue;
        }
        let build = match builds.entry(row.build) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let build = store.get::<Build>(&row.build.to_string()).await?;
                place.insert(build.map(Versioned::into_inner).filter(owns))
            }
        };
        live.extend(build.clone().map(|build| (row.record.path, build)));
    }
    Ok(live)
}

/// Lists the files that the newest `most` builds keep from others, by build and path.
pub async fn kept_by_newest(
    store: &Store,
    most: u32,
) -> Result<Vec<(Build, Vec<RepoPath>)>, ReadError> {
    let newest = Query::new().order_by("created_at").descending().limit(most);
    let builds = store.list::<Build>(newest).await?.into_iter();
    let builds: Vec<Build> = builds.map(Versioned::into_inner).filter(owns).collect();
    let ids = builds.iter().map(|build| build.id);
    let mut kept: BTreeMap<BuildId, Vec<RepoPath>> = BTreeMap::new();
    for row in store
        .list::<Ownership>(Query::new().one_of("build", ids))
        .await?
    {
        if !row.ended {
            kept.entry(row.build).or_default().push(row.record.path);
        }
    }
    let files = builds.into_iter().filter_map(|build| {
        let mut files = kept.remove(&build.id)?;
        files.sort();
        Some((build, files))
    });
    Ok(files.collect())
}

/// Reads what a build owns, or owned last.
pub async fn owned_by(
    store: &Store,
    build: BuildId,
) -> Result<Vec<Versioned<Ownership>>, ReadError> {
    store.list(Query::new().equal("build", build)).await
}
