//! Joins the head of another build into this one, before a task changes a file that was the other one's (design §15).
//!
//! The joined head passes the checks of the whole before it lands, as every commit does; the build remembers whom it
//! follows, so that the other one is merged first.

use ropewalk_schemas::attempt::{FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState, Followed};
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{ChangeSet, CommitError};
use ropewalk_workspace::{CommitMessage, Merge, PreserveKey};
use tracing::{info, warn};

use super::attempt::{Work, held_now};
use super::context::{self, CONFLICTS, Plan};
use super::ending::{Fault, Rows};
use super::gate::whole::{self, Whole};
use super::landing::conflict;
use super::publish;
use super::trouble::Trouble;

/// What came of joining.
pub(crate) enum Joined {
    /// The head to work from.
    Stands(CommitId),
    /// The heads do not go together.
    Failed(Box<Fault>),
    /// The attempt no longer holds what it needs.
    Lost(String),
}

/// Joins every head that the files of the attempt come from.
pub(crate) async fn join(work: &Work<'_>) -> Result<Joined, Trouble> {
    let mut base = work.claim.base.clone();
    for followed in &work.claim.after {
        let clone = &work.shop.clone;
        if clone.is_ancestor(&followed.commit, &base).await? {
            continue;
        }
        match one(work, followed).await? {
            Joined::Stands(head) => base = head,
            other => return Ok(other),
        }
    }
    Ok(Joined::Stands(base))
}

async fn one(work: &Work<'_>, followed: &Followed) -> Result<Joined, Trouble> {
    for _ in 0..CONFLICTS {
        let Some(rows) = work.rows().await? else {
            return Ok(Joined::Lost("the task was taken away".to_owned()));
        };
        if rows.build.state != BuildState::Running {
            let state = rows.build.state;
            return Ok(Joined::Lost(format!("the build is {state}")));
        }
        let Some(head) = rows.build.head.clone() else {
            return Ok(Joined::Lost("the build has no head".to_owned()));
        };
        let merged = merge(work, followed, &head).await?;
        let commit = match merged {
            Merge::Contained => return Ok(Joined::Stands(head)),
            Merge::FastForward => followed.commit.clone(),
            Merge::Merged(commit) => commit,
            Merge::Conflict(files) => {
                return Ok(Joined::Failed(Box::new(conflict(&files))));
            }
        };
        if let Some(ended) = check_and_land(work, &rows, followed, &commit).await? {
            return Ok(ended);
        }
    }
    Err(Trouble::Contended(work.claim.task.id.to_string()))
}

async fn merge(work: &Work<'_>, followed: &Followed, head: &CommitId) -> Result<Merge, Trouble> {
    let build = work.claim.task.build;
    let other = name(work, followed.build).await?;
    let message = CommitMessage::new(format!("Join the head of {other}"))
        .with_body("It changed a file that the next task changes.")
        .with_trailer("Ropewalk-Execution", build.to_string());
    let now = work.context.now();
    let clone = &work.shop.clone;
    Ok(clone.merge(&followed.commit, head, &message, now).await?)
}

async fn name(work: &Work<'_>, build: BuildId) -> Result<String, Trouble> {
    let other = context::build(&work.context.store, build).await?;
    Ok(other.map_or_else(|| format!("build {build}"), |other| other.branch.clone()))
}

/// Checks the joined head as a whole and lands it; none when the head moved meanwhile.
async fn check_and_land(
    work: &Work<'_>,
    rows: &Rows,
    followed: &Followed,
    commit: &CommitId,
) -> Result<Option<Joined>, Trouble> {
    let claim = work.claim;
    let key = PreserveKey {
        build: claim.task.build,
        task: claim.task.id.clone(),
        attempt: claim.attempt.number,
    };
    work.shop.clone.preserve(&key, commit).await?;
    let Some(plan) = Plan::load(&work.context.store, claim.task.build).await? else {
        return Ok(Some(Joined::Lost("the build is gone".to_owned())));
    };
    let tasks = plan.records();
    let whole = Whole {
        build: &rows.build,
        tasks: &tasks,
        commit,
        level: rows.build.level,
        now: work.context.now(),
    };
    let seen = whole::check(&work.shop.house, &whole, &work.cancel).await?;
    let Some(evidence) = seen else {
        let ended = "it was ended during the check of the joined head";
        return Ok(Some(Joined::Lost(ended.to_owned())));
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
        return Ok(Some(Joined::Failed(Box::new(Fault::new(class, told)))));
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
        Err(CommitError::Conflict { .. }) => return Ok(None),
        Err(CommitError::Fenced { path, .. }) => {
            return Ok(Some(Joined::Lost(format!("the lock on `{path}` was lost"))));
        }
        Err(error) => return Err(error.into()),
    }
    info!(build.id = %rows.build.id, "joined the head of build `{}`", followed.build);
    if let Err(trouble) = publish::publish(work.shop, &work.context, rows.build.id).await {
        warn!(build.id = %rows.build.id, "the branch is not published yet: {trouble}");
    }
    Ok(Some(Joined::Stands(commit.clone())))
}
