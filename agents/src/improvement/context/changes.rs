//! Reads what a build changed, as far as nobody has read it yet.

use ropewalk_gate::protected;
use ropewalk_schemas::CommitId;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_workspace::{ChangedFile, GitError, LocalClone};

use super::ReviewedBuild;
use crate::improvement::decide::IDEAS;
use crate::improvement::prompt::change::{FittedChange, fitted, left_out};

/// So many files are named to git at a time.
const NAMED: usize = 500;
/// So much of a change is read; far more than is shown of it.
const MOST_READ: usize = 2 * 1024 * 1024;

/// What changed from the base of a build to its head.
pub(in crate::improvement) struct BuildChanges {
    /// The files; one that a branch changed which was joined, and the build did not, is none of them.
    pub(in crate::improvement) files: Vec<ChangedFile>,
    /// How they changed, as it is shown.
    pub(in crate::improvement) shown: FittedChange,
    /// Whether only what came since the review before is shown.
    pub(in crate::improvement) since: bool,
}

/// Reads what changed from the base of the build to its head, and shows `bytes` of it at most; `None` when nothing was committed.
pub(in crate::improvement) async fn changed(
    clone: &LocalClone,
    reviewed: &ReviewedBuild,
    bytes: usize,
) -> Result<Option<BuildChanges>, String> {
    let build = &reviewed.build;
    let ends: Option<(&CommitId, &CommitId)> = build.base.as_ref().zip(build.head.as_ref());
    let Some((base, head)) = ends.filter(|(base, head)| base != head) else {
        return Ok(None);
    };
    let read = async {
        let joined = joined(clone, reviewed, head).await?;
        let files = own_files(clone, reviewed, (base, head), &joined).await?;
        let seen = seen(clone, reviewed, head, &joined).await?;
        let text = match seen {
            Some(seen) => {
                // What was put back as the base has it changed since, though it is none of the files.
                let later = clone.changed_files(seen.as_str(), head.as_str()).await?;
                diff(clone, (seen, head), &later).await?
            }
            None => diff(clone, (base, head), &files).await?,
        };
        Ok::<_, GitError>(BuildChanges {
            files,
            shown: fitted(&text, bytes),
            since: seen.is_some(),
        })
    };
    read.await
        .map(Some)
        .map_err(|error| Words::of(&error).to_string())
}

/// Lists the branches that tasks of the build joined into it, each as it was then.
async fn joined<'a>(
    clone: &LocalClone,
    reviewed: &'a ReviewedBuild,
    head: &CommitId,
) -> Result<Vec<&'a CommitId>, GitError> {
    let mut joined = Vec::new();
    for other in landed(reviewed).filter_map(|task| task.joins.as_ref()) {
        if clone.is_ancestor(other, head).await? {
            joined.push(other);
        }
    }
    Ok(joined)
}

/// Returns the head up to which the review before saw everything; none where a branch was joined since, as the difference would not
/// tell what came in with that from what the build made of it.
async fn seen<'a>(
    clone: &LocalClone,
    reviewed: &'a ReviewedBuild,
    head: &CommitId,
    joined: &[&CommitId],
) -> Result<Option<&'a CommitId>, GitError> {
    let former = reviewed.former.as_ref();
    let Some(seen) = former.and_then(|former| former.head.as_ref()) else {
        return Ok(None);
    };
    let mut is_plain = clone.is_ancestor(seen, head).await?;
    for other in joined {
        is_plain = is_plain && clone.is_ancestor(other, seen).await?;
    }
    Ok(is_plain.then_some(seen))
}

/// Lists the files that changed, without those which are as the branch has them that was joined last, and that no task names: they
/// came in with it.
async fn own_files(
    clone: &LocalClone,
    reviewed: &ReviewedBuild,
    (base, head): (&CommitId, &CommitId),
    joined: &[&CommitId],
) -> Result<Vec<ChangedFile>, GitError> {
    let mut files = clone.changed_files(base.as_str(), head.as_str()).await?;
    let Some(other) = joined.last() else {
        return Ok(files);
    };
    for commit in landed(reviewed).filter_map(|task| task.commit.as_ref()) {
        // Where work of the build is on that branch, as once it was merged, nothing tells whose a file is.
        if clone.is_ancestor(commit, other).await? && !clone.is_ancestor(commit, base).await? {
            return Ok(files);
        }
    }
    let own = clone.changed_files(other.as_str(), head.as_str()).await?;
    files.retain(|file| is_named(reviewed, &file.path) || is_among(file, &own));
    Ok(files)
}

/// Lists the tasks of the build that landed.
fn landed(reviewed: &ReviewedBuild) -> impl Iterator<Item = &Task> {
    let tasks = reviewed.tasks.iter();
    tasks.filter(|task| task.state == TaskState::Complete)
}

/// Says whether a task names the file.
fn is_named(reviewed: &ReviewedBuild, path: &str) -> bool {
    let mut files = reviewed.tasks.iter().flat_map(|task| task.block.files());
    files.any(|file| file.as_str() == path)
}

fn is_among(file: &ChangedFile, files: &[ChangedFile]) -> bool {
    // They are listed in the order of their paths.
    let found = files.binary_search_by(|one| one.path.cmp(&file.path));
    found.is_ok()
}

/// Shows what changed, the tests first, since they say what the rest is for; the folder of the idea is no work of the
/// build.
async fn diff(
    clone: &LocalClone,
    (base, head): (&CommitId, &CommitId),
    files: &[ChangedFile],
) -> Result<String, GitError> {
    let work = files.iter().map(|file| file.path.as_str());
    let work = work.filter(|path| !path.starts_with(IDEAS));
    let (tests, others): (Vec<&str>, Vec<&str>) = work.partition(|path| protected::is_test(path));
    let mut text = String::new();
    for paths in [tests, others] {
        for some in paths.chunks(NAMED) {
            let part = clone.diff_of(base.as_str(), head.as_str(), some).await?;
            if part.truncated {
                one_by_one(clone, (base, head), some, &mut text).await?;
            } else {
                text.push_str(&part.text);
            }
        }
    }
    Ok(text)
}

/// Shows what changed in files that are too long to be shown together: each whole or not at all.
async fn one_by_one(
    clone: &LocalClone,
    (base, head): (&CommitId, &CommitId),
    paths: &[&str],
    text: &mut String,
) -> Result<(), GitError> {
    for path in paths {
        if text.len() < MOST_READ {
            let part = clone.diff_of(base.as_str(), head.as_str(), &[path]).await?;
            if !part.truncated {
                text.push_str(&part.text);
                continue;
            }
        }
        text.push_str(&left_out(path));
    }
    Ok(())
}
