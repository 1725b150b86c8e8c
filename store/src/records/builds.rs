//! Rows of builds, what people want of their branches, their tasks, attempts and evidence.

use ropewalk_schemas::attempt::{Attempt, Evidence, Verdict};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::{Task, WaitReason};
use ropewalk_schemas::wish::Wish;
use ropewalk_schemas::{AttemptId, BuildId, CommitId, TaskId};

use super::record;

/// Returns the key of a task.
pub fn task_key(build: BuildId, task: &TaskId) -> String {
    format!("{build}/{task}")
}

/// Returns the key of an attempt.
pub fn attempt_key(attempt: AttemptId) -> String {
    attempt.to_string()
}

/// Returns the key of the evidence for one commit: of an attempt, of a task, or of the whole build.
pub fn evidence_key(
    build: BuildId,
    task: Option<&TaskId>,
    attempt: Option<AttemptId>,
    commit: &CommitId,
) -> String {
    let task = task.map_or("-", TaskId::as_str);
    let attempt = attempt.map_or_else(|| "-".to_owned(), |attempt| attempt.to_string());
    format!("{build}/{task}/{attempt}/{commit}")
}

const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Held => "held",
    }
}

const fn waiting_for(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Lock => "lock",
        WaitReason::Owner => "owner",
        WaitReason::Person => "person",
        WaitReason::Quota => "quota",
        WaitReason::Budget => "budget",
        WaitReason::Check => "check",
        WaitReason::Outage => "outage",
    }
}

record!(Build, "builds", |build| build.id.to_string(), {
    "idea": text = &build.idea,
    "spec": text = build.spec,
    "user": text = &build.user,
    "state": text = build.state,
    "priority": integer = build.priority,
    "created_at": integer = build.created_at,
});

record!(Wish, "wishes", |wish| wish.build.to_string(), {
    "at": integer = wish.at,
});

record!(Task, "tasks", |task| task_key(task.build, &task.id), {
    "build": text = task.build,
    "task": text = &task.id,
    "number": integer = task.number,
    "state": text = task.state,
    "waiting_for": text = task.waiting_for.map(waiting_for),
    "assigned_to": text = task.assigned_to.as_ref(),
});

record!(Attempt, "attempts", |attempt| attempt_key(attempt.id), {
    "build": text = attempt.build,
    "task": text = &attempt.task,
    "number": integer = attempt.number,
    "state": text = attempt.state,
    "loop_name": text = &attempt.loop_name,
});

record!(
    Evidence,
    "evidence",
    |evidence| evidence_key(
        evidence.build,
        evidence.task.as_ref(),
        evidence.attempt,
        &evidence.commit
    ),
    {
        "build": text = evidence.build,
        "task": text = evidence.task.as_ref(),
        "attempt": text = evidence.attempt,
        "commit": text = &evidence.commit,
        "tree": text = &evidence.tree,
        "verdict": text = verdict(evidence.verdict),
        "at": integer = evidence.at,
    }
);
