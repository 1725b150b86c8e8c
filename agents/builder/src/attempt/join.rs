//! Joins the head of another build into this one, before a task changes a file that was the other one's (design §15).
//!
//! The joined head passes the checks of the whole before it lands, as every commit does; the build remembers whom it
//! follows, so that the other one is merged first.

use ropewalk_schemas::attempt::{FailureClass, Verdict};
use ropewalk_schemas::build::{Build, Predecessor};
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{ChangeSet, CommitError, retry_on_conflict};
use ropewalk_workspace::{CommitMessage, Merge, PreserveKey, Side};
use tracing::{info, warn};

use super::ending::Fault;
use super::landing::conflict;
use super::rows::Rows;
use super::work::{Work, held_now};
use crate::context::{self, Plan};
use crate::error::BuilderError;
use crate::scheduler::publish;
use ropewalk_gate::whole::{self, Whole};

/// What came of joining.
pub(crate) enum JoinOutcome {
    /// The head to work from.
    Stands(CommitId),
    /// The heads do not go together.
    Failed(Box<Fault>),
    /// The attempt no longer holds what it needs.
    Lost(String),
}

/// Joins every head that the files of the attempt come from.
pub(crate) async fn join(work: &Work<'_>) -> Result<JoinOutcome, BuilderError> {
    let mut base = work.claim.base.clone();
    for followed in &work.claim.after {
        let clone = &work.shared.clone;
        if clone.is_ancestor(&followed.commit, &base).await? {
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
                let fault = conflict(&files).for_certain();
                return Ok(Some(JoinOutcome::Failed(Box::new(fault))));
            }
        };
        check_and_land(work, &rows, followed, &commit).await
    })
}

async fn merge(
    work: &Work<'_>,
    followed: &Predecessor,
    head: &CommitId,
) -> Result<Merge, BuilderError> {
    let build = work.claim.task.build;
    let other = name(work, followed.build).await?;
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

async fn name(work: &Work<'_>, build: BuildId) -> Result<String, BuilderError> {
    let other = context::build(&work.context.store, build).await?;
    Ok(other.map_or_else(|| format!("build {build}"), |other| other.branch.clone()))
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
