//! Lets an attempt join another branch into that of its build: it begins where both bear the marks of what stands against
//! each other, and what it makes of that lands as one commit of both.

use ropewalk_coordination::ownership;
use ropewalk_schemas::build::{Build, Predecessor};
use ropewalk_schemas::task::{Action, Task, TaskBlock};
use ropewalk_schemas::{BuildId, CommitId, RepoPath};
use ropewalk_store::{ChangeSet, ReadError, retry_on_conflict};
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, ConflictFile, Merge, Rebase, RebasedCandidate, Side};

use super::Ending;
use super::ending::Fault;
use super::work::Work;
use crate::context;
use crate::error::BuilderError;
use crate::scheduler::resolve::Conflict;

/// The subject of a commit that bears marks.
const MARKED: &str = "Conflicts, to be resolved";

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

/// Lets an attempt stand on what it begins on at `head`: that itself, or joined as far as they go together with the branch that its
/// task joins. Says how it ends where its task has to be another one first.
pub(super) async fn begin(
    work: &Work<'_>,
    head: &CommitId,
) -> Result<Option<Ending>, BuilderError> {
    let Some(other) = &work.claim.task.joins else {
        work.stand_on(head.clone());
        return Ok(None);
    };
    let clone = &work.shared.clone;
    if clone.is_ancestor(other, head).await? {
        // What is left of it is to look that its check holds.
        let block = TaskBlock {
            action: Action::Verify,
            ..work.claim.task.block.clone()
        };
        let why = "the other branch has come in already, and the task only checks that it holds";
        return become_another(work, block, why).await.map(Some);
    }
    if let Some(ending) = widen(work, head, other).await? {
        return Ok(Some(ending));
    }
    let marked = marked(work, head, other).await?;
    clone.preserve(&work.key(), &marked).await?;
    work.stand_on(marked);
    Ok(None)
}

/// Gives a task the files in which the branch that it joins stands against `head` since: nobody looks for marks in any others.
async fn widen(
    work: &Work<'_>,
    head: &CommitId,
    other: &CommitId,
) -> Result<Option<Ending>, BuilderError> {
    let (clone, build) = (&work.shared.clone, &work.claim.build);
    let task = &work.claim.task;
    let notes = context::notes(build, Side::Into);
    let message = CommitMessage::new(MARKED);
    let merge = clone
        .merge(other, head, &notes, &message, work.context.now())
        .await?;
    let Merge::Conflict(files) = merge else {
        return Ok(None);
    };
    let is_own = |file: &ConflictFile| task.block.files().any(|own| own.as_str() == file.path);
    if files.iter().all(is_own) {
        return Ok(None);
    }
    let fault = Fault::of_conflict(&files).for_certain();
    let name = name_of(work, other).await?;
    let sides = (head, other);
    let Some(conflict) = Conflict::of(clone, &name, sides, files).await? else {
        return Ok(Some(Ending::Failed(Box::new(fault))));
    };
    let block = conflict.block_of(build, task)?;
    let why = "the other branch stands against more files by now, which the task takes in";
    become_another(work, block, why).await.map(Some)
}

/// Ends an attempt whose task is another one from now on; the next attempt begins with that.
async fn become_another(
    work: &Work<'_>,
    block: TaskBlock,
    why: &str,
) -> Result<Ending, BuilderError> {
    retry_on_conflict!(BuilderError, &work.claim.task.id, {
        if let Some(rows) = work.rows().await? {
            let task = Task {
                block: block.clone(),
                ..rows.task.record.clone()
            };
            let mut changes = ChangeSet::new();
            changes.update(&rows.task, &task);
            work.context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })?;
    Ok(Ending::Interrupted(why.to_owned()))
}

/// Joins a branch with `head` as far as they go together.
async fn marked(
    work: &Work<'_>,
    head: &CommitId,
    other: &CommitId,
) -> Result<CommitId, BuilderError> {
    let clone = &work.shared.clone;
    let message = CommitMessage::new(MARKED);
    // The time of the later of both, so that the next attempt begins on the same commit: what was kept stands on it.
    let (ours, theirs) = tokio::try_join!(clone.committed_at(head), clone.committed_at(other))?;
    let when = ours.max(theirs);
    let notes = context::notes(&work.claim.build, Side::Into);
    Ok(clone
        .merge_marked(head, other, &notes, &message, when)
        .await?)
}

/// Puts a candidate onto what an attempt would begin on at `head`, and says what that is.
///
/// What joins another branch holds all of that, and goes along with it. Nobody else could land on the files that it resolved, since
/// it has them locked; where what landed beside it stands against the other branch, that is a conflict like any other.
pub(super) async fn rebase(
    work: &Work<'_>,
    candidate: &CommitId,
    head: &CommitId,
) -> Result<(Rebase, CommitId), BuilderError> {
    let clone = &work.shared.clone;
    let Some(other) = &work.claim.task.joins else {
        return Ok((clone.rebase(candidate, head).await?, head.clone()));
    };
    let begun_on = marked(work, head, other).await?;
    let notes = context::notes(&work.claim.build, Side::Into);
    let message = CommitMessage::new("Conflicts, resolved");
    let when = clone.committed_at(candidate).await?;
    let merge = clone.merge(candidate, head, &notes, &message, when).await?;
    let both = match merge {
        // It was made on this head.
        Merge::Contained | Merge::FastForward => candidate.clone(),
        Merge::Merged(both) => both,
        Merge::Conflict(files) => return Ok((Rebase::Conflict(files), begun_on)),
    };
    let tree = clone.tree_of(&both).await?;
    let rebased = NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(&begun_on),
        message: &message,
        when,
    };
    let commit = clone.create_commit(rebased).await?;
    let tree_changed = both != *candidate;
    let rebased = RebasedCandidate {
        commit,
        tree,
        tree_changed,
    };
    Ok((Rebase::Rebased(rebased), begun_on))
}

/// Makes what lands on `head` out of a candidate that was put onto it: that itself, or the commit of both branches.
pub(super) async fn joined(
    work: &Work<'_>,
    candidate: CommitId,
    head: &CommitId,
) -> Result<CommitId, BuilderError> {
    let Some(other) = &work.claim.task.joins else {
        return Ok(candidate);
    };
    let (clone, build) = (&work.shared.clone, &work.claim.build);
    let name = name_of(work, other).await?;
    let subject = format!("Merge branch '{name}' into {}", build.branch);
    let files = work.claim.task.block.files();
    let files: Vec<&str> = files.map(RepoPath::as_str).collect();
    let message = CommitMessage::new(subject)
        .with_body(format!("Conflicts were resolved in {}.", files.join(", ")))
        .with_trailer("Ropewalk-Task", work.claim.task.id.as_str())
        .with_trailer("Ropewalk-Execution", build.id.to_string());
    let commit = NewCommit {
        tree: &clone.tree_of(&candidate).await?,
        parents: &[head.clone(), other.clone()],
        message: &message,
        when: work.context.now(),
    };
    Ok(clone.create_commit(commit).await?)
}

/// Returns how people know a branch that a task joins.
async fn name_of(work: &Work<'_>, other: &CommitId) -> Result<String, ReadError> {
    match predecessor(work, other).await? {
        Some(followed) => branch_of(work, followed.build).await,
        None => Ok(work.claim.build.target.clone()),
    }
}
