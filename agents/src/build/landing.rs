//! Lands a candidate: on the head, gated as it stands there, fenced by its locks, in one transaction.

use ropewalk_runtime::failpoint;
use ropewalk_schemas::attempt::{AttemptState, Evidence, FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::TaskCompleted;
use ropewalk_schemas::task::{Action, ChangeRequestState, Task, TaskState};
use ropewalk_schemas::{CommitId, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, CommitError};
use ropewalk_workspace::{ConflictFile, PreserveKey, Rebase};
use tracing::{info, warn};

use super::attempt::{Work, fault_of, held_now};
use super::context::{CONFLICTS, Plan};
use super::decide::readiness::unblocked_by;
use super::ending::{self, Fault, Report, Rows};
use super::gate::run;
use super::settle::go;
use super::trouble::Trouble;
use super::{lessons, milestones, tasks_file};

/// What came of a landing.
pub(crate) enum Landing {
    /// The work is in.
    Landed,
    /// The work does not fit the head, or does not hold there.
    Failed(Box<Fault>),
    /// The attempt no longer holds what a landing needs.
    Lost(String),
}

/// Lands what the gate saw pass.
pub(crate) async fn land(
    work: &Work<'_>,
    mut seen: run::Seen,
    allowed: &[RepoPath],
    report: &mut Report,
) -> Result<Landing, Trouble> {
    let mut parent = work.base().clone();
    for _ in 0..CONFLICTS {
        let Some(rows) = work.rows().await? else {
            return Ok(Landing::Lost("the task was taken away".to_owned()));
        };
        if rows.build.state != BuildState::Running {
            return Ok(Landing::Lost(format!("the build is {}", rows.build.state)));
        }
        let Some(head) = rows.build.head.clone() else {
            return Ok(Landing::Lost("the build has no head".to_owned()));
        };
        if head != parent {
            match onto(work, &seen.evidence, &head, allowed).await? {
                Moved::Stands(stands) => seen = *stands,
                Moved::Failed(fault) => return Ok(Landing::Failed(fault)),
                Moved::Ended => {
                    return Ok(Landing::Lost("it was ended during the gate".to_owned()));
                }
            }
            parent = head;
            report.candidate = Some(seen.evidence.commit.clone());
            continue;
        }
        let changes = landing(work, &rows, &seen.evidence, report).await?;
        failpoint!("build.landing.before");
        let landed = work.context.store.commit(changes).await;
        failpoint!("build.landing.after");
        match landed {
            Ok(_) => {
                after(work, report).await;
                return Ok(Landing::Landed);
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(CommitError::Fenced { path, .. }) => {
                return Ok(Landing::Lost(format!("the lock on `{path}` was lost")));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(work.claim.task.id.to_string()))
}

/// What became of a candidate whose head moved.
enum Moved {
    Stands(Box<run::Seen>),
    Failed(Box<Fault>),
    Ended,
}

/// Puts the candidate onto the head and gates it there, unless nothing changed by it.
async fn onto(
    work: &Work<'_>,
    evidence: &Evidence,
    head: &CommitId,
    allowed: &[RepoPath],
) -> Result<Moved, Trouble> {
    let clone = &work.shop.clone;
    let commit = if work.claim.task.block.action == Action::Verify {
        head.clone()
    } else {
        match clone
            .rebase(&evidence.commit, head, work.context.now())
            .await?
        {
            Rebase::Rebased(rebased) => rebased.commit,
            Rebase::Conflict(files) => return Ok(Moved::Failed(Box::new(conflict(&files)))),
        }
    };
    let key = PreserveKey {
        build: work.claim.task.build,
        task: work.claim.task.id.clone(),
        attempt: work.claim.attempt.number,
    };
    clone.preserve(&key, &commit).await?;
    // A tree that was seen before costs nothing: its runs are known.
    let candidate = run::Candidate {
        task: &work.claim.task,
        attempt: work.claim.attempt.id,
        commit: &commit,
        parent: head,
        base: work.claim.build.base.as_ref(),
        allowed,
    };
    Ok(
        match run::candidate(&work.shop.house, &work.context, &candidate, &work.cancel).await? {
            None => Moved::Ended,
            Some(seen) if seen.evidence.verdict == Verdict::Passed => Moved::Stands(Box::new(seen)),
            Some(seen) => Moved::Failed(Box::new(fault_of(seen))),
        },
    )
}

/// Shows both sides of a conflict.
pub(crate) fn conflict(files: &[ConflictFile]) -> Fault {
    let mut text = String::from("the head changed the same lines\n");
    for file in files {
        text.push_str("\n--- ");
        text.push_str(&file.path);
        text.push_str(" ---\n");
        text.push_str(file.merged.as_deref().unwrap_or("[one side deleted it]"));
    }
    let mut fault = Fault::new(FailureClass::Conflict, text);
    fault.changed = files.iter().map(|file| file.path.clone()).collect();
    fault
}

/// Says everything that landing changes, in one change set.
async fn landing(
    work: &Work<'_>,
    rows: &Rows,
    evidence: &Evidence,
    report: &Report,
) -> Result<ChangeSet, Trouble> {
    let context = &work.context.because_of(rows.task.cause);
    let now = context.now();
    let commit = (rows.task.block.action != Action::Verify).then(|| evidence.commit.clone());
    let mut changes = ChangeSet::new();
    // The version of the build fences the head: nobody else can have landed in between.
    let build = Build {
        head: Some(evidence.commit.clone()),
        ..rows.build.record.clone()
    };
    if commit.is_some() {
        changes.update(&rows.build, &build);
    } else {
        changes.require(&rows.build);
    }
    let mut task = rows.task.record.clone();
    go(&mut task, TaskState::Complete);
    task.commit.clone_from(&commit);
    task.completed_at = Some(now);
    task.progress_at = Some(now);
    task.reason = None;
    task.attempt = None;
    task.resume_from = None;
    note_applied(&mut task);
    changes.update(&rows.task, &task);
    ending::end_attempt(
        context,
        &mut changes,
        rows,
        AttemptState::Landed,
        None,
        report,
    );
    changes.put(evidence);
    let plan = Plan::load(&context.store, task.build).await?;
    let tasks = plan.map_or_else(Vec::new, |plan| plan.records());
    let unblocked = unblocked_by(&tasks, &task.id);
    let runs = evidence.checks.iter().filter_map(|run| run.tests.as_ref());
    let passed = runs.map(|tests| tests.passed).sum();
    milestones::landed(
        work.shop,
        context,
        &mut changes,
        &rows.build,
        &tasks,
        passed,
    )
    .await?;
    let started = rows.attempt.started_at;
    changes.emit(context.event(
        Subject::task(task.build, &task.id),
        Payload::TaskCompleted(TaskCompleted {
            build_id: task.build,
            task_id: task.id.clone(),
            idea_slug: rows.build.idea.clone(),
            attempts: task.attempts,
            duration_seconds: u64::try_from((now - started).num_seconds()).unwrap_or_default(),
            commit_sha: commit,
            unblocked,
        }),
    ));
    // Giving a lock back demands its token, which is what fences a holder that lost it on the way.
    let locks = held_now(&work.locks);
    for (path, token) in &locks {
        changes.release(path, *token);
    }
    ending::told_released(context, &mut changes, rows, locks.into_keys().collect());
    lessons::learn(work, rows, report, &mut changes).await?;
    Ok(changes)
}

/// Marks what owners allowed as made.
fn note_applied(task: &mut Task) {
    let commit = task.commit.clone();
    for request in &mut task.change_requests {
        if request.state == ChangeRequestState::Approved {
            request.state = ChangeRequestState::Applied;
            request.commit.clone_from(&commit);
        }
    }
}

/// What follows a landing: the ref, which the steward moves beside the next task, and the file for people. A crash in
/// between is made good at the next start.
async fn after(work: &Work<'_>, report: &Report) {
    let claim = work.claim;
    info!(task.id = %claim.task.id, "landed `{}` of `{}`", claim.task.id, claim.build.idea);
    work.shop.signals.ring_steward();
    if let Err(trouble) = tasks_file::write(work.shop, &work.context, claim.build.id).await {
        warn!(build.id = %claim.build.id, "tasks.md is not up to date: {trouble}");
    }
    if let Some(summary) = &report.summary {
        tracing::debug!(task.id = %claim.task.id, "{summary}");
    }
}
