//! Lands a candidate: on the head, gated as it stands there, fenced by its locks, in one transaction.

use ropewalk_runtime::failpoint;
use ropewalk_schemas::attempt::{Evidence, Verdict};
use ropewalk_schemas::build::{Build, TaskCounts};
use ropewalk_schemas::payload::TaskCompleted;
use ropewalk_schemas::task::{Action, ChangeRequestState, Task};
use ropewalk_schemas::{CommitId, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, CommitError, retry_on_conflict};
use ropewalk_workspace::Rebase;
use tracing::{info, warn};

use super::ending::Fault;
use super::gating;
use super::joining;
use super::lessons;
use super::report::Report;
use super::rows::Rows;
use super::work::{Work, held_now};
use crate::context::Plan;
use crate::decide::counts::count;
use crate::decide::readiness::unblocked_by;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::task::Input;
use crate::milestones;
use crate::scheduler::tasks_file;
use ropewalk_gate::candidate::GateReport;

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
    mut seen: GateReport,
    allowed: &[RepoPath],
    report: &mut Report,
) -> Result<Landing, BuilderError> {
    let mut parent = work.base();
    retry_on_conflict!(BuilderError, &work.claim.task.id, {
        let Some(rows) = work.rows().await? else {
            return Ok(Some(lost("the task was taken away")));
        };
        if !rows.build.lets_land() {
            return Ok(Some(lost(&format!("the build is {}", rows.build.state))));
        }
        if rows.task.has_to_hear() {
            return Ok(Some(lost("a person spoke about it before it landed")));
        }
        let Some(head) = rows.build.head.clone() else {
            return Ok(Some(lost("the build has no head")));
        };
        if head != parent {
            match onto(work, &seen.evidence, &head, allowed).await? {
                RebaseOutcome::Stands(stands) => seen = *stands,
                RebaseOutcome::Failed(fault) => return Ok(Some(Landing::Failed(fault))),
                RebaseOutcome::Lost(reason) => return Ok(Some(lost(reason))),
            }
            parent = head;
            report.candidate = Some(seen.evidence.commit.clone());
            return Ok(None);
        }
        let changes = landing(work, &rows, &seen.evidence, report).await?;
        failpoint!("build.landing.before");
        let landed = work.context.store.commit(changes).await;
        failpoint!("build.landing.after");
        match landed {
            Ok(_) => {
                after(work, report).await;
                Ok(Some(Landing::Landed))
            }
            Err(CommitError::Fenced { path, .. }) => {
                Ok(Some(lost(&format!("the lock on `{path}` was lost"))))
            }
            Err(error) => Err(error.into()),
        }
    })
}

fn lost(reason: &str) -> Landing {
    Landing::Lost(reason.to_owned())
}

/// What became of a candidate whose head moved.
enum RebaseOutcome {
    Stands(Box<GateReport>),
    Failed(Box<Fault>),
    Lost(&'static str),
}

/// Puts the candidate onto the head and gates it there, unless nothing changed by it.
async fn onto(
    work: &Work<'_>,
    evidence: &Evidence,
    head: &CommitId,
    allowed: &[RepoPath],
) -> Result<RebaseOutcome, BuilderError> {
    let (commit, parent) = if work.claim.task.block.action == Action::Verify {
        (head.clone(), head.clone())
    } else {
        match joining::rebase(work, &evidence.commit, head).await? {
            (Rebase::Rebased(rebased), begun_on) => {
                let commit = joining::joined(work, rebased.commit, head).await?;
                (commit, begun_on)
            }
            (Rebase::Conflict(files), _) => {
                let fault = Fault::of_conflict(&files);
                return Ok(RebaseOutcome::Failed(Box::new(fault)));
            }
        }
    };
    let clone = &work.shared.clone;
    clone.preserve(&work.key(), &commit).await?;
    // A tree that was seen before costs nothing: its runs are known. What joins another branch changes what it made of the
    // conflicts, and not all that came with that branch.
    let seen = gating::check(work, &commit, &parent, (allowed, &[])).await?;
    Ok(match seen {
        None => RebaseOutcome::Lost("it was ended during the gate"),
        Some(seen) if seen.evidence.verdict == Verdict::Passed => {
            RebaseOutcome::Stands(Box::new(seen))
        }
        Some(seen) => RebaseOutcome::Failed(Box::new(Fault::seen(seen))),
    })
}

/// Says everything that landing changes, in one change set.
async fn landing(
    work: &Work<'_>,
    rows: &Rows,
    evidence: &Evidence,
    report: &Report,
) -> Result<ChangeSet, BuilderError> {
    let context = &work.context.because_of(rows.task.cause);
    let now = context.now();
    let commit = (rows.task.block.action != Action::Verify).then(|| evidence.commit.clone());
    let mut changes = ChangeSet::new();
    // The version of the build fences the head and what is counted: nobody else can have landed in between.
    let head = commit.clone().or_else(|| rows.build.head.clone());
    let build = Build {
        head,
        follows: joining::followed(work, &rows.build).await?,
        ..rows.build.record.clone()
    };
    changes.update(&rows.build, &build);
    let mut ended = ChangeSet::new();
    let input = Input::Land {
        commit: commit.clone(),
    };
    let mut task = Scene::new(work.shared, context, &rows.build)
        .with(report)
        .holding(held_now(&work.locks))
        .task(&mut ended, &rows.task, input)
        .await?;
    note_applied(&mut task);
    changes.update(&rows.task, &task);
    changes.put(evidence);
    let plan = Plan::load(&context.store, task.build).await?;
    let tasks = plan.map_or_else(Vec::new, |plan| plan.records());
    let unblocked = unblocked_by(&tasks, &task.id);
    let counts = counts_with(&task, &tasks);
    let passed = evidence.tests_passed();
    milestones::landed(
        work.shared,
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
            counts,
        }),
    ));
    changes.merge(ended);
    lessons::learn(work, rows, report, &mut changes).await?;
    Ok(changes)
}

/// Counts the tasks as this landing leaves them.
fn counts_with(landed: &Task, tasks: &[Task]) -> TaskCounts {
    let mut after = tasks.to_vec();
    if let Some(task) = after.iter_mut().find(|task| task.id == landed.id) {
        task.clone_from(landed);
    }
    count(&after)
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

/// What follows a landing: the ref, which the scheduler moves beside the next task, and the file for people. A crash in
/// between is made good at the next start.
async fn after(work: &Work<'_>, report: &Report) {
    let claim = work.claim;
    info!(task.id = %claim.task.id, "landed `{}` of `{}`", claim.task.id, claim.build.idea);
    work.shared.signals.wake_scheduler();
    if let Err(error) = tasks_file::write(work.shared, &work.context, claim.build.id).await {
        warn!(build.id = %claim.build.id, "tasks.md is not up to date: {error}");
    }
    if let Some(summary) = &report.summary {
        tracing::debug!(task.id = %claim.task.id, "{summary}");
    }
}
