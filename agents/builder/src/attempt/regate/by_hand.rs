//! Takes up what a person made by hand: a task that is tried again is shown to its gate as it stands on the branch, before a
//! model is asked for anything.

use ropewalk_schemas::attempt::{AttemptState, Failure, FailureClass};
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_store::{Versioned, retry_on_conflict};
use ropewalk_workspace::commit::LoggedCommit;

use crate::attempt::ending::Fault;
use crate::attempt::report::Report;
use crate::attempt::work::{Work, held_now};
use crate::attempt::{Ending, Phase, advance, check_and_land, earlier, start};
use crate::context::Plan;
use crate::error::BuilderError;
use crate::scheduler::adopt::adopted;
use crate::scheduler::publish::{self, Against};

/// What is written into each commit of this program, and by nobody else.
const OURS: &str = "Ropewalk-Execution";
/// So many commits are named in what is told of them.
const NAMED: usize = 5;

/// Work that no attempt made.
struct HandWork {
    /// With it, on the head.
    commit: CommitId,
    /// Without it.
    parent: CommitId,
    /// Where the branch is with it, unless the build goes on from there already.
    branch: Option<CommitId>,
    /// What it is, by the subjects of its commits.
    told: String,
}

/// Shows what people made since the task failed to the gate and lands it; none where they made nothing, or where that
/// needs a model.
///
/// What somebody put on the branch and what does not pass stays where it is, and is asked about.
pub(in crate::attempt) async fn take_up(
    work: &Work<'_>,
    report: &mut Report,
) -> Result<Option<Ending>, BuilderError> {
    let Some(made) = find(work).await? else {
        return Ok(None);
    };
    if !start(work).await? {
        return Ok(Some(taken_away()));
    }
    note(work, &made, report).await?;
    if !advance(work, Phase::Validating, AttemptState::Validating, report).await? {
        return Ok(Some(taken_away()));
    }
    let allowed = held_now(&work.locks).into_keys();
    let allowed: Vec<RepoPath> = allowed.chain(report.granted.clone()).collect();
    let ending = check_and_land(work, &made.commit, &made.parent, &allowed, report).await?;
    let Ending::Failed(fault) = ending else {
        return Ok(Some(ending));
    };
    match made.branch {
        // It is in the head: a model goes on from there.
        None => {
            *report = Report::default();
            Ok(None)
        }
        // A person decides, or a check is missing: it goes to the gate again as it is.
        Some(_) if fault.waits_for_consent() || fault.is_held() => Ok(Some(Ending::Failed(fault))),
        Some(branch) => ask(work, branch, &fault).await.map(Some),
    }
}

fn taken_away() -> Ending {
    Ending::Interrupted("the task was taken away".to_owned())
}

/// Finds what people committed since the last round of the task ended; none for a task that nobody wanted tried again.
async fn find(work: &Work<'_>) -> Result<Option<HandWork>, BuilderError> {
    let task = &work.claim.task;
    if task.joins.is_some()
        || task.block.action == Action::Verify
        || !is_retried(work, task).await?
    {
        return Ok(None);
    }
    let Some(since) = earlier::last_base(work).await? else {
        return Ok(None);
    };
    let base = work.base();
    let clone = &work.shared.clone;
    let build = &work.claim.build;
    if let Some(found) = adopted(work.shared, &work.context, build).await? {
        // Other tasks land, and are published, while this one begins.
        let made = by_people(clone.log(Some(&base), &found.branch).await?);
        if !made.is_empty() {
            return Ok(Some(HandWork {
                commit: found.head,
                parent: base,
                branch: Some(found.branch),
                told: told(&made),
            }));
        }
    }
    let made = by_people(clone.log(Some(&since), &base).await?);
    Ok((!made.is_empty()).then(|| HandWork {
        commit: base,
        parent: since,
        branch: None,
        told: told(&made),
    }))
}

/// Says whether somebody wanted the task tried again and nothing has failed since. Where a task was left out that was to resolve what
/// stands against it, that counts as met anew, which is no failure of this round.
async fn is_retried(work: &Work<'_>, task: &Task) -> Result<bool, BuilderError> {
    if task.failures.is_empty() {
        return Ok(!task.earlier_failures.is_empty());
    }
    let is_conflict = |failure: &Failure| failure.class == FailureClass::Conflict;
    if !task.failures.iter().all(is_conflict) {
        return Ok(false);
    }
    let plan = Plan::load(&work.context.store, task.build).await?;
    let is_left_out =
        |task: &Versioned<Task>| task.joins.is_some() && task.state == TaskState::Skipped;
    Ok(plan.is_some_and(|plan| plan.tasks.iter().any(is_left_out)))
}

fn by_people(made: Vec<LoggedCommit>) -> Vec<LoggedCommit> {
    made.into_iter().filter(|one| !is_ours(one)).collect()
}

fn is_ours(commit: &LoggedCommit) -> bool {
    commit.trailers.iter().any(|(name, _)| name == OURS)
}

fn told(made: &[LoggedCommit]) -> String {
    let subjects = made.iter().rev().take(NAMED).map(|one| &*one.subject);
    let subjects: Vec<&str> = subjects.collect();
    format!("Made by hand: {}", subjects.join("; "))
}

/// Notes what is shown to the gate, and keeps it.
async fn note(work: &Work<'_>, made: &HandWork, report: &mut Report) -> Result<(), BuilderError> {
    let clone = &work.shared.clone;
    let kept = clone.preserve(&work.key(), &made.commit).await?;
    let changed = clone.changed_files(made.parent.as_str(), made.commit.as_str());
    let changed = changed.await?.into_iter();
    report.granted = changed
        .filter_map(|file| RepoPath::parse(&file.path).ok())
        .collect();
    report.candidate = Some(made.commit.clone());
    report.preserve_ref = Some(kept.reference);
    report.summary = Some(made.told.clone());
    Ok(())
}

/// Asks how to go on with what somebody put on the branch; the task waits with its build.
async fn ask(work: &Work<'_>, branch: CommitId, fault: &Fault) -> Result<Ending, BuilderError> {
    let against = Against::Moved(Some(branch));
    retry_on_conflict!(BuilderError, &work.claim.task.id, {
        if let Some(rows) = work.rows().await? {
            publish::hold(work.shared, &work.context, &rows.build, &against).await?;
        }
        Ok(Some(()))
    })?;
    let name = &work.claim.build.branch;
    let why = format!(
        "what was put on `{name}` does not pass its check yet: {}",
        fault.error
    );
    Ok(Ending::Interrupted(why))
}
