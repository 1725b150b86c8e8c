//! Lets an attempt join another branch into that of its build: it begins where both bear the marks of what stands against
//! each other, and what it makes of that lands as one commit of both.

use ropewalk_coordination::ownership;
use ropewalk_schemas::build::{Build, Predecessor};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{BuildId, CommitId, RepoPath};
use ropewalk_store::{ChangeSet, ReadError, retry_on_conflict};
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, Side};

use super::Ending;
use super::work::Work;
use crate::context;
use crate::error::BuilderError;

/// Says whether the work of an attempt brings `commit` in, since its task joins a branch that has it.
pub(super) async fn brings(work: &Work<'_>, commit: &CommitId) -> Result<bool, BuilderError> {
    match &work.claim.task.joins {
        Some(other) => Ok(work.shared.clone.is_ancestor(commit, other).await?),
        None => Ok(false),
    }
}

/// Returns how people know a build: by its branch.
pub(super) async fn branch_of(work: &Work<'_>, build: BuildId) -> Result<String, ReadError> {
    let other = context::build(&work.context.store, build).await?;
    Ok(other.map_or_else(|| format!("build {build}"), |other| other.branch.clone()))
}

/// Lists whom a build follows once the work of an attempt has landed: with it, the build whose head its task joins.
pub(super) async fn followed(
    work: &Work<'_>,
    build: &Build,
) -> Result<Vec<Predecessor>, ReadError> {
    let mut follows = build.follows.clone();
    if let Some(other) = &work.claim.task.joins {
        let joined = predecessor(work, other).await?;
        follows.extend(joined.filter(|joined| !follows.contains(joined)));
    }
    Ok(follows)
}

/// Finds the build whose head a task joins: the one that a file of its own build comes from. It is none where that is the branch
/// that its build is landed in.
async fn predecessor(work: &Work<'_>, head: &CommitId) -> Result<Option<Predecessor>, ReadError> {
    let owned = ownership::owned_by(&work.context.store, work.claim.task.build).await?;
    let mut after = owned.iter().filter_map(|row| row.after.clone());
    Ok(after.find(|after| after.commit == *head))
}

/// Says whether the branch that a task is to join has come into `head` by another way.
pub(super) async fn has_come_in(work: &Work<'_>, head: &CommitId) -> Result<bool, BuilderError> {
    match &work.claim.task.joins {
        Some(other) => Ok(work.shared.clone.is_ancestor(other, head).await?),
        None => Ok(false),
    }
}

/// Ends an attempt at a task that has nothing to join any more: what is left of it is to look that its check holds.
pub(super) async fn leave_to_verify(work: &Work<'_>) -> Result<Ending, BuilderError> {
    retry_on_conflict!(BuilderError, &work.claim.task.id, {
        if let Some(rows) = work.rows().await? {
            let mut task = rows.task.record.clone();
            task.block.action = Action::Verify;
            let mut changes = ChangeSet::new();
            changes.update(&rows.task, &task);
            work.context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })?;
    let why = "the other branch has come in already, and the task only checks that it holds";
    Ok(Ending::Interrupted(why.to_owned()))
}

/// Returns what an attempt begins on that stands on `head`: that itself, unless its task joins another branch.
pub(super) async fn base(work: &Work<'_>, head: CommitId) -> Result<CommitId, BuilderError> {
    let Some(other) = &work.claim.task.joins else {
        return Ok(head);
    };
    let clone = &work.shared.clone;
    let message = CommitMessage::new("Conflicts, to be resolved");
    // The time of the later of both, so that the next attempt begins on the same commit: what was kept stands on it.
    let (ours, theirs) = tokio::try_join!(clone.committed_at(&head), clone.committed_at(other))?;
    let when = ours.max(theirs);
    let notes = context::notes(&work.claim.build, Side::Into);
    let marked = clone
        .merge_marked(&head, other, &notes, &message, when)
        .await?;
    clone.preserve(&work.key(), &marked).await?;
    Ok(marked)
}

/// Makes the commit of both branches out of `candidate`, in which every conflict is resolved; none where `head` went on
/// meanwhile, so that there may be others.
pub(super) async fn joined(
    work: &Work<'_>,
    candidate: &CommitId,
    head: &CommitId,
    other: &CommitId,
) -> Result<Option<CommitId>, BuilderError> {
    let clone = &work.shared.clone;
    if !clone.is_ancestor(head, &work.base()).await? {
        return Ok(None);
    }
    let build = &work.claim.build;
    let name = match predecessor(work, other).await? {
        Some(followed) => branch_of(work, followed.build).await?,
        None => build.target.clone(),
    };
    let subject = format!("Merge branch '{name}' into {}", build.branch);
    let files = work.claim.task.block.files();
    let files: Vec<&str> = files.map(RepoPath::as_str).collect();
    let message = CommitMessage::new(subject)
        .with_body(format!("Conflicts were resolved in {}.", files.join(", ")))
        .with_trailer("Ropewalk-Task", work.claim.task.id.as_str())
        .with_trailer("Ropewalk-Execution", build.id.to_string());
    let commit = NewCommit {
        tree: &clone.tree_of(candidate).await?,
        parents: &[head.clone(), other.clone()],
        message: &message,
        when: work.context.now(),
    };
    Ok(Some(clone.create_commit(commit).await?))
}
