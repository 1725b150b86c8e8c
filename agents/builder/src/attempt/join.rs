//! Joins the head of another build into this one, before a task changes a file that was the other one's (design §15).
//!
//! The joined head passes the checks of the whole before it lands; the build remembers whom it follows, so that the other one is
//! merged first. Heads that stand against each other are asked about; where somebody wants the task tried again, another task
//! joins them first, under its gate, and the whole is checked when the build ends. Where that one is left out, who waited for it
//! meets the conflict itself, and it is asked about anew.

use ropewalk_schemas::attempt::{FailureClass, Verdict};
use ropewalk_schemas::build::{Build, Predecessor};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{CommitId, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Versioned, retry_on_conflict};
use ropewalk_workspace::{CommitMessage, ConflictFile, Merge, PreserveKey, Side};
use tracing::{info, warn};

use super::ending::Fault;
use super::joining;
use super::rows::Rows;
use super::work::{Work, held_now};
use crate::context::{self, Plan};
use crate::decide::failure::{is_to_be_resolved, was_met};
use crate::decide::order::can_wait_for;
use crate::decide::readiness::Edges;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::task::{Input, apply_alone};
use crate::scheduler::adopt::adopted;
use crate::scheduler::publish;
use crate::scheduler::resolve::Conflict;
use ropewalk_gate::whole::{self, Whole};

/// What came of joining.
pub(crate) enum JoinOutcome {
    /// The head to work from.
    Stands(CommitId),
    /// The heads do not go together.
    Failed(Box<Fault>),
    /// The attempt no longer holds what it needs, or others go first.
    Lost(String),
}

/// Joins every head that the files of the attempt come from, but for one that the work itself joins.
pub(crate) async fn join(work: &Work<'_>) -> Result<JoinOutcome, BuilderError> {
    let mut base = work.claim.base.clone();
    for followed in &work.claim.after {
        let clone = &work.shared.clone;
        let is_there = clone.is_ancestor(&followed.commit, &base).await?;
        if is_there || joining::brings(work, &followed.commit).await? {
            continue;
        }
        match one(work, followed).await? {
            JoinOutcome::Stands(head) => base = head,
            other => return Ok(other),
        }
    }
    Ok(JoinOutcome::Stands(base))
}

async fn one(work: &Work<'_>, followed: &Predecessor) -> Result<JoinOutcome, BuilderError> {
    retry_on_conflict!(BuilderError, &work.claim.task.id, {
        let lost = |reason: String| Ok(Some(JoinOutcome::Lost(reason)));
        let Some(rows) = work.rows().await? else {
            return lost("the task was taken away".to_owned());
        };
        if !rows.build.lets_land() {
            return lost(format!("the build is {}", rows.build.state));
        }
        let Some(head) = rows.build.head.clone() else {
            return lost("the build has no head".to_owned());
        };
        let commit = match merge(work, followed, &head).await? {
            Merge::Contained => return Ok(Some(JoinOutcome::Stands(head))),
            Merge::FastForward => followed.commit.clone(),
            Merge::Merged(commit) => commit,
            Merge::Conflict(files) => {
                let came = settle_conflict(work, &rows, followed, (&head, files)).await?;
                return Ok(Some(came));
            }
        };
        check_and_land(work, &rows, followed, &commit).await
    })
}

/// Says what follows where heads stand against each other: a person is asked. What they joined by hand since goes to the gate
/// as it is, and where they only want the task tried again, another one resolves that first.
async fn settle_conflict(
    work: &Work<'_>,
    rows: &Rows,
    followed: &Predecessor,
    (head, files): (&CommitId, Vec<ConflictFile>),
) -> Result<JoinOutcome, BuilderError> {
    let fault = Box::new(Fault::of_conflict(&files).for_certain());
    let clone = &work.shared.clone;
    // Whoever was asked may have joined them, and left the task out that was to.
    if was_met(&rows.task)
        && let Some(by_hand) = adopted(work.shared, &work.context, &rows.build).await?
        && clone.is_ancestor(&followed.commit, &by_hand.head).await?
    {
        return Ok(JoinOutcome::Stands(head.clone()));
    }
    // What gives way to a later revision gets no task that the revision does not know.
    if !is_to_be_resolved(&rows.task) || rows.build.gives_way() {
        return Ok(JoinOutcome::Failed(fault));
    }
    let name = joining::branch_of(work, followed.build).await?;
    let sides = (head, &followed.commit);
    let Some(conflict) = Conflict::of(clone, &name, sides, files).await? else {
        return Ok(JoinOutcome::Failed(fault));
    };
    let resolving = put_behind(work, rows, &conflict).await?;
    Ok(resolving.map_or(JoinOutcome::Failed(fault), |resolving| {
        JoinOutcome::Lost(format!("`{resolving}` goes first"))
    }))
}

/// Ends the attempt and lets its task wait for one that resolves what stands against it, and that is told what people said; one
/// that is there for another task already is enough. None where that one waits for this one, so that neither would go first.
async fn put_behind(
    work: &Work<'_>,
    rows: &Rows,
    conflict: &Conflict,
) -> Result<Option<TaskId>, BuilderError> {
    let context = work.context.because_of(rows.task.cause);
    let Some(plan) = Plan::load(&context.store, rows.build.id).await? else {
        return Err(BuilderError::Missing("the build is gone".to_owned()));
    };
    let mut changes = ChangeSet::new();
    changes.require(&rows.build);
    let resolving = if let Some(task) = conflict.task_in(&plan) {
        if !can_wait_for(&plan.records(), &rows.task.id, &task.id) {
            return Ok(None);
        }
        // As it stands: it may be put behind this one at the same time.
        let is_it = |row: &&Versioned<Task>| row.record.id == task.id;
        if let Some(row) = plan.tasks.iter().find(is_it) {
            changes.require(row);
        }
        task.id.clone()
    } else {
        let task = Task {
            guidance: rows.task.guidance.clone(),
            ..conflict.new_task(&plan)?
        };
        changes.insert(&task);
        task.id
    };
    let input = Input::CutOff {
        why: format!("`{resolving}` goes first"),
        not_before: None,
        counts: false,
    };
    let scene = Scene::new(work.shared, &context, &rows.build);
    let mut task = scene.task(&mut changes, &rows.task, input).await?;
    task.block.depends_on.push(resolving.clone());
    // At once, so that nobody claims it before the edges are looked at.
    let edges = Input::Edges(Edges::Open(vec![resolving.clone()]));
    let task = apply_alone(&task, edges, context.now())?;
    changes.update(&rows.task, &task);
    context.store.commit(changes).await?;
    info!(task.id = %task.id, "`{resolving}` joins another branch before `{}` goes on", task.id);
    Ok(Some(resolving))
}

async fn merge(
    work: &Work<'_>,
    followed: &Predecessor,
    head: &CommitId,
) -> Result<Merge, BuilderError> {
    let build = work.claim.task.build;
    let other = joining::branch_of(work, followed.build).await?;
    let message = CommitMessage::new(format!("Join the head of {other}"))
        .with_body("It changed a file that the next task changes.")
        .with_trailer("Ropewalk-Execution", build.to_string());
    let clone = &work.shared.clone;
    // The time of the later of both, so that a repetition makes the same commit.
    let (ours, theirs) = tokio::try_join!(
        clone.committed_at(head),
        clone.committed_at(&followed.commit)
    )?;
    let when = ours.max(theirs);
    let notes = context::notes(&work.claim.build, Side::Into);
    Ok(clone
        .merge(&followed.commit, head, &notes, &message, when)
        .await?)
}

/// Checks the joined head as a whole and lands it; none when the head moved meanwhile.
async fn check_and_land(
    work: &Work<'_>,
    rows: &Rows,
    followed: &Predecessor,
    commit: &CommitId,
) -> Result<Option<JoinOutcome>, BuilderError> {
    let claim = work.claim;
    let key = PreserveKey {
        build: claim.task.build,
        task: claim.task.id.clone(),
        attempt: claim.attempt.number,
    };
    work.shared.clone.preserve(&key, commit).await?;
    let Some(plan) = Plan::load(&work.context.store, claim.task.build).await? else {
        return Ok(Some(JoinOutcome::Lost("the build is gone".to_owned())));
    };
    let tasks = plan.records();
    let whole = Whole {
        build: &rows.build,
        tasks: &tasks,
        commit,
        level: rows.build.level,
        now: work.context.now(),
    };
    let seen = whole::check(&work.shared.gate, &whole, &work.cancel).await?;
    let Some(evidence) = seen else {
        let ended = "it was ended during the check of the joined head";
        return Ok(Some(JoinOutcome::Lost(ended.to_owned())));
    };
    if evidence.verdict != Verdict::Passed {
        let told = format!(
            "the head does not hold together with build `{}`: {}",
            followed.build,
            evidence.findings.join("; ")
        );
        let class = match evidence.verdict {
            Verdict::Held => FailureClass::ToolMissing,
            _ => FailureClass::Conflict,
        };
        let fault = Fault::new(class, told).for_certain();
        return Ok(Some(JoinOutcome::Failed(Box::new(fault))));
    }
    let mut follows = rows.build.follows.clone();
    follows.push(followed.clone());
    let after = Build {
        head: Some(commit.clone()),
        follows,
        ..rows.build.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&rows.build, &after);
    changes.put(&evidence);
    for (path, token) in held_now(&work.locks) {
        changes.fence(&path, token);
    }
    match work.context.store.commit(changes).await {
        Ok(_) => {}
        Err(CommitError::Fenced { path, .. }) => {
            return Ok(Some(JoinOutcome::Lost(format!(
                "the lock on `{path}` was lost"
            ))));
        }
        Err(error) => return Err(error.into()),
    }
    info!(build.id = %rows.build.id, "joined the head of build `{}`", followed.build);
    if let Err(error) = publish::publish(work.shared, &work.context, rows.build.id).await {
        warn!(build.id = %rows.build.id, "the branch is not published yet: {error}");
    }
    Ok(Some(JoinOutcome::Stands(commit.clone())))
}
