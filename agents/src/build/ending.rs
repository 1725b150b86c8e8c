//! Records how an attempt ended without landing: failed, held, or interrupted.

mod telling;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_bus::locks;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, AttemptState, Evidence, Failure, FailureClass};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::LockReleased;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, BuildId, Payload, RepoPath, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Versioned, attempt_key};

use super::Shop;
use super::ask;
use super::context::{self, CONFLICTS, of_build};
use super::decide::failure::{self, Answer, Happened};
use super::lessons;
use super::milestones;
use super::settle::go;
use super::trouble::Trouble;
use telling::{End, standing_of, told_failed};

/// So much of an error is kept with the task; the evidence holds more.
const ERROR_BYTES: usize = 8 * 1024;
/// So much of an error travels with `task.failed`.
const EVENT_ERROR_BYTES: usize = 2 * 1024;

/// Why an attempt failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) class: FailureClass,
    /// The actual output.
    pub(crate) error: String,
    /// The changed files, each with what tells its content from any other.
    pub(crate) changed: Vec<String>,
    /// What a person would have to accept.
    pub(crate) protected: Vec<String>,
    /// When the provider said its quota is back.
    pub(crate) quota_back: Option<DateTime<Utc>>,
    /// Whether packages can be installed for what was checked.
    pub(crate) installable: bool,
    /// What the gate saw, if it came so far.
    pub(crate) evidence: Option<Evidence>,
}

impl Fault {
    /// A fault that the gate has not seen.
    pub(crate) fn new(class: FailureClass, error: impl Into<String>) -> Self {
        Self {
            class,
            error: error.into(),
            changed: Vec::new(),
            protected: Vec::new(),
            quota_back: None,
            installable: false,
            evidence: None,
        }
    }
}

/// What an attempt has learned about itself so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) summary: Option<String>,
    pub(crate) tokens: u64,
    pub(crate) candidate: Option<ropewalk_schemas::CommitId>,
    pub(crate) preserve_ref: Option<String>,
    pub(crate) granted: Vec<RepoPath>,
    pub(crate) gotchas: Vec<ropewalk_schemas::KnowledgeId>,
    pub(crate) lesson: Option<super::attempt::Lesson>,
}

/// The rows of a running attempt, if it still is the one that runs.
pub(crate) struct Rows {
    pub(crate) build: Versioned<Build>,
    pub(crate) task: Versioned<Task>,
    pub(crate) attempt: Versioned<Attempt>,
}

impl Rows {
    /// Loads the rows; none when the task was taken away from the attempt.
    pub(crate) async fn load(
        context: &Context,
        build: BuildId,
        task: &TaskId,
        attempt: AttemptId,
    ) -> Result<Option<Self>, Trouble> {
        let store = &context.store;
        let (Some(build), Some(task), Some(row)) = (
            context::build(store, build).await?,
            context::task(store, build, task).await?,
            store.get::<Attempt>(&attempt_key(attempt)).await?,
        ) else {
            return Ok(None);
        };
        let ours = task.attempt == Some(attempt) && !row.state.is_final();
        Ok(ours.then_some(Self {
            build,
            task,
            attempt: row,
        }))
    }
}

/// Records a failure with everything that follows from it.
pub(crate) async fn failed(
    shop: &Shop,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    fault: &Fault,
    report: &Report,
) -> Result<(), Trouble> {
    for _ in 0..CONFLICTS {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return Ok(());
        };
        let changes = failure_changes(shop, context, &rows, fault, report).await?;
        match context.store.commit(changes).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. } | CommitError::Fenced { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(format!("task/{}/{}", ids.0, ids.1)))
}

async fn failure_changes(
    shop: &Shop,
    context: &Context,
    rows: &Rows,
    fault: &Fault,
    report: &Report,
) -> Result<ChangeSet, Trouble> {
    let context = of_build(context, &rows.build).because_of(rows.task.cause);
    let error = bounded(&fault.error, ERROR_BYTES);
    let mut failure = Failure {
        class: fault.class,
        fingerprint: failure::fingerprint(fault.class, &error, &fault.changed),
        error,
        attempt: rows.attempt.number,
    };
    let happened = Happened {
        failure: &failure,
        quota_back: fault.quota_back,
        installable: fault.installable,
        now: context.now(),
        jitter: context.ids.fraction(),
    };
    let answer = failure::answer(&rows.task, &happened, &shop.options.tries);
    if let Answer::Fail { class } = answer {
        failure.class = class;
    }
    let mut changes = ChangeSet::new();
    let counts = !matches!(answer, Answer::Hold | Answer::WaitQuota { .. });
    let mut task = without_attempt(&rows.task);
    if counts {
        task.failures.push(failure.clone());
        task.tries += u32::from(failure::is_counted(fault.class));
    }
    if answer == Answer::AskPerson {
        task.resume_from.clone_from(&report.candidate);
    }
    let end = match answer {
        Answer::Fail { class } => Some(End {
            class,
            standing: standing_of(&context, &task).await?,
        }),
        _ => None,
    };
    let cause = Cause {
        build: &rows.build,
        fault,
        end: end.as_ref(),
    };
    follow(shop, &context, &mut changes, &mut task, &cause, &answer).await?;
    changes.update(&rows.task, &task);
    let state = if counts {
        AttemptState::Failed
    } else {
        AttemptState::Interrupted
    };
    let told = counts.then_some(failure.clone());
    end_attempt(&context, &mut changes, rows, state, told, report);
    if let Some(evidence) = &fault.evidence {
        changes.put(evidence);
    }
    if matches!(answer, Answer::Fail { .. }) {
        // A claim that was decided before this failure must not go through: the build may have to stop.
        changes.update(&rows.build, &rows.build.record);
        lessons::weigh(&context, &mut changes, rows.build.spec, &task, false).await?;
    }
    if counts && answer.will_retry() {
        milestones::takes_long(shop, &context, &mut changes, &rows.build, &task).await?;
    }
    if counts {
        let told = told_failed(rows, &task, &failure, answer.will_retry(), end.as_ref());
        changes.emit(context.event(Subject::task(task.build, &task.id), told));
    }
    release(&context, &mut changes, rows).await?;
    Ok(changes)
}

fn without_attempt(task: &Task) -> Task {
    Task {
        attempt: None,
        claimed_at: None,
        ..task.clone()
    }
}

/// Why a task moves.
struct Cause<'a> {
    build: &'a Build,
    fault: &'a Fault,
    end: Option<&'a End>,
}

/// Moves the task where the answer says.
async fn follow(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    task: &mut Task,
    cause: &Cause<'_>,
    answer: &Answer,
) -> Result<(), Trouble> {
    let Cause { build, fault, end } = *cause;
    let why = first_line(&fault.error);
    match answer {
        Answer::Retry { not_before } => {
            go(task, TaskState::Ready);
            task.not_before = *not_before;
            task.reason = Some(format!("tries again: {why}"));
        }
        Answer::RebaseAndRetry => {
            go(task, TaskState::Ready);
            task.rebases += 1;
            task.reason = Some("tries again on the head that moved".to_owned());
        }
        Answer::InstallAndRetry => {
            go(task, TaskState::Ready);
            task.installs += 1;
            task.reason = Some(format!("tries again after an install: {why}"));
        }
        Answer::WaitQuota { until } => {
            go(task, TaskState::Waiting);
            task.waiting_for = Some(WaitReason::Quota);
            task.not_before = Some(*until);
            task.reason = Some(format!("waits for the provider's quota until {until}"));
            let provider = shop.engine.models().build.model.name().to_owned();
            changes.put(&Wait {
                waiter: Party::Task {
                    build: task.build,
                    task: task.id.clone(),
                },
                resource: Resource::Quota { provider },
                holder: None,
                since: context.now(),
            });
        }
        Answer::Hold => {
            go(task, TaskState::Waiting);
            task.waiting_for = Some(WaitReason::Check);
            task.reason = Some(format!("a check could not run: {why}"));
        }
        Answer::AskPerson => {
            let files = &fault.protected;
            task.question =
                ask::protected_files(shop, context, changes, build, task, files).await?;
            go(task, TaskState::Waiting);
            task.waiting_for = Some(WaitReason::Person);
            task.reason = Some(format!("asks whether it may: {}", files.join(", ")));
        }
        Answer::Fail { class } => {
            let standing = end.map(|end| end.standing).unwrap_or_default();
            let told = ask::FailedTask {
                task,
                class: *class,
                standing,
            };
            task.question = ask::task_failed(shop, context, changes, build, told).await?;
            go(task, TaskState::Failed);
            task.reason = Some(format!("failed ({class:?}): {why}"));
        }
    }
    Ok(())
}

/// Records that an attempt was ended from outside; its try is not counted and its work is kept.
pub(crate) async fn interrupted(
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    reason: &str,
    pause: Option<Duration>,
    report: &Report,
) -> Result<(), Trouble> {
    for _ in 0..CONFLICTS {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return kept(context, ids.2, report).await;
        };
        let context = of_build(context, &rows.build).because_of(rows.task.cause);
        let mut changes = ChangeSet::new();
        requeue(&context, &mut changes, &rows, reason, pause, report).await?;
        match context.store.commit(changes).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. } | CommitError::Fenced { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(format!("task/{}/{}", ids.0, ids.1)))
}

/// Writes down where the work of an attempt is kept that somebody else ended meanwhile.
pub(crate) async fn kept(
    context: &Context,
    attempt: AttemptId,
    report: &Report,
) -> Result<(), Trouble> {
    let Some(reference) = &report.preserve_ref else {
        return Ok(());
    };
    for _ in 0..CONFLICTS {
        let Some(row) = context.store.get::<Attempt>(&attempt_key(attempt)).await? else {
            return Ok(());
        };
        if row.preserve_ref.is_some() {
            return Ok(());
        }
        let after = Attempt {
            preserve_ref: Some(reference.clone()),
            ..row.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&row, &after);
        match context.store.commit(changes).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(format!("attempt/{attempt}")))
}

/// Puts the task of an attempt back, with its attempts kept and its locks free.
pub(crate) async fn requeue(
    context: &Context,
    changes: &mut ChangeSet,
    rows: &Rows,
    reason: &str,
    pause: Option<Duration>,
    report: &Report,
) -> Result<(), Trouble> {
    let mut task = rows.task.record.clone();
    // Whatever kept the attempt from its work may still be there; a pause keeps it from spinning.
    task.not_before = pause
        .and_then(|pause| chrono::TimeDelta::from_std(pause).ok())
        .map(|pause| context.now() + pause);
    go(&mut task, TaskState::Ready);
    task.attempt = None;
    task.claimed_at = None;
    task.reason = Some(format!("ready again: {reason}"));
    changes.update(&rows.task, &task);
    end_attempt(
        context,
        changes,
        rows,
        AttemptState::Interrupted,
        None,
        report,
    );
    release(context, changes, rows).await
}

/// Closes the attempt's row.
pub(crate) fn end_attempt(
    context: &Context,
    changes: &mut ChangeSet,
    rows: &Rows,
    state: AttemptState,
    failure: Option<Failure>,
    report: &Report,
) {
    let before = &rows.attempt;
    let after = Attempt {
        state,
        failure,
        summary: report.summary.clone().or_else(|| before.summary.clone()),
        tokens: report.tokens.max(before.tokens),
        candidate: report
            .candidate
            .clone()
            .or_else(|| before.candidate.clone()),
        preserve_ref: report
            .preserve_ref
            .clone()
            .or_else(|| before.preserve_ref.clone()),
        granted: if report.granted.is_empty() {
            before.granted.clone()
        } else {
            report.granted.clone()
        },
        gotchas: if report.gotchas.is_empty() {
            before.gotchas.clone()
        } else {
            report.gotchas.clone()
        },
        ended_at: Some(context.now()),
        ..before.record.clone()
    };
    changes.update(before, &after);
}

/// Gives back every lock that the attempt still holds, and says so; what it waited for it waits for no more.
pub(crate) async fn release(
    context: &Context,
    changes: &mut ChangeSet,
    rows: &Rows,
) -> Result<(), Trouble> {
    let held = locks::held_by(&context.store, rows.attempt.id).await?;
    let locks: BTreeMap<RepoPath, i64> = held
        .iter()
        .map(|lease| (lease.path.clone(), lease.token))
        .collect();
    for (path, token) in &locks {
        changes.release(path, *token);
    }
    told_released(context, changes, rows, locks.into_keys().collect());
    stop_waiting(context, changes, &rows.task).await
}

/// Names a task as the wait-for graph does.
pub(crate) fn party(task: &Task) -> Party {
    Party::Task {
        build: task.build,
        task: task.id.clone(),
    }
}

/// Ends every wait of a task.
pub(crate) async fn stop_waiting(
    context: &Context,
    changes: &mut ChangeSet,
    task: &Task,
) -> Result<(), Trouble> {
    let waits = locks::waits_of(&context.store, &party(task)).await?;
    locks::stop_waiting(changes, &waits);
    Ok(())
}

/// Emits `lock.released` for files that were given back.
pub(crate) fn told_released(
    context: &Context,
    changes: &mut ChangeSet,
    rows: &Rows,
    files: Vec<RepoPath>,
) {
    if files.is_empty() {
        return;
    }
    changes.emit(context.event(
        Subject::task(rows.task.build, &rows.task.id),
        Payload::LockReleased(LockReleased {
            build_id: rows.task.build,
            task_id: rows.task.id.clone(),
            attempt_id: rows.attempt.id,
            files,
        }),
    ));
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().chars().take(200).collect()
}

/// Keeps head and tail of a text: compilers say first what is wrong, test runners last.
pub(crate) fn bounded(text: &str, limit_bytes: usize) -> String {
    if text.len() <= limit_bytes {
        return text.to_owned();
    }
    let head = floor(text, limit_bytes / 4);
    let tail = ceil(text, text.len() - (limit_bytes * 3 / 4 - 32));
    format!("{}\n[… left out …]\n{}", &text[..head], &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_keeps_its_head_and_its_tail() {
        let text = format!("first é{}last é", "x".repeat(20_000));
        let kept = bounded(&text, ERROR_BYTES);
        assert!(kept.len() <= ERROR_BYTES);
        assert!(kept.starts_with("first") && kept.ends_with("last é"));
        assert_eq!(bounded("short", 10), "short");
    }
}
