//! The builds whose work another one joined, before it changed files of theirs.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::build::{Build, BuildState, Predecessor};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, RepoPath};
use ropewalk_store::{ChangeSet, Query, ReadError, Store, path_key};

use crate::views::records;

/// A build as it was when its work was joined, and the files that it was joined for.
pub(super) struct JoinedBuild {
    build: Build,
    followed: Predecessor,
    files: Vec<RepoPath>,
}

impl JoinedBuild {
    /// Returns the build; its head is what was joined.
    pub(super) fn build(&self) -> &Build {
        &self.build
    }
}

/// Finds what `build`, which has these tasks, joined. A build that is forgotten is left out.
pub(super) async fn of(
    store: &Store,
    build: &Build,
    tasks: &[Task],
) -> Result<Vec<JoinedBuild>, ReadError> {
    let of_build = |id: BuildId| Query::new().equal("build", id.to_string());
    let owned = records(store.list::<Ownership>(of_build(build.id)).await?);
    let mut joined = Vec::new();
    for followed in &build.follows {
        let id = followed.build;
        let Some(row) = store.get::<Build>(&id.to_string()).await? else {
            continue;
        };
        let after = owned.iter();
        let after = after.filter(|row| row.after.as_ref() == Some(followed));
        let mut files: Vec<RepoPath> = after.map(|row| row.path.clone()).collect();
        // Files that have another owner by now say it no more; those that both change are those that it was about.
        if files.is_empty() {
            let theirs = records(store.list::<Task>(of_build(id)).await?);
            let theirs: BTreeSet<String> = files_of(&theirs).map(path_key).collect();
            let ours = files_of(tasks).filter(|file| theirs.contains(&path_key(file)));
            files = ours.cloned().collect();
        }
        joined.push(JoinedBuild {
            build: as_joined(row.into_inner(), followed),
            followed: followed.clone(),
            files,
        });
    }
    Ok(joined)
}

fn files_of(tasks: &[Task]) -> impl Iterator<Item = &RepoPath> {
    tasks.iter().flat_map(|task| task.block.files())
}

/// Returns a build as its follower found it: what became of it later is not to be done again.
fn as_joined(build: Build, followed: &Predecessor) -> Build {
    let state = if build.state.has_ended() {
        build.state
    } else {
        BuildState::Succeeded
    };
    Build {
        head: Some(followed.commit.clone()),
        published: Some(followed.commit.clone()),
        question: None,
        state,
        ..build
    }
}

/// Writes the builds down, but those that are `known` already, and that `build` has the files after them.
pub(super) fn lay(
    joined: &[JoinedBuild],
    known: &BTreeSet<BuildId>,
    build: &Build,
    changes: &mut ChangeSet,
) {
    let newest: BTreeMap<BuildId, &Build> = joined
        .iter()
        .map(|joined| (joined.build.id, &joined.build))
        .collect();
    for (id, joined) in newest {
        if !known.contains(&id) {
            changes.insert(joined);
        }
    }
    let mut owned = BTreeMap::new();
    for joined in joined {
        for file in &joined.files {
            owned.insert(path_key(file), (file, &joined.followed));
        }
    }
    for (file, followed) in owned.into_values() {
        changes.insert(&Ownership {
            path: file.clone(),
            build: build.id,
            since: build.created_at,
            ended: false,
            after: Some(followed.clone()),
        });
    }
}
