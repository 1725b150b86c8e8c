//! Loads what PM decides from.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_config::Trigger;
use ropewalk_config::questions::choice;
use ropewalk_coordination::locks;
use ropewalk_coordination::ownership::{self, Owner};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wait::Party;
use ropewalk_schemas::{AttemptId, BuildId, ComponentName, RepoPath, TaskId};
use ropewalk_store::{Query, ReadError, Store, Versioned, attempt_key, task_key};

use super::decide::{Claimant, Load};

/// The states of an attempt that runs.
const RUNNING: [AttemptState; 3] = [
    AttemptState::Working,
    AttemptState::Validating,
    AttemptState::Landing,
];
/// The states of a task that still has something before it.
const OPEN: [TaskState; 8] = [
    TaskState::Pending,
    TaskState::Ready,
    TaskState::Claimed,
    TaskState::Working,
    TaskState::Validating,
    TaskState::Landing,
    TaskState::Blocked,
    TaskState::Waiting,
];
/// The states of a build that still has something before it.
const LIVE: [BuildState; 5] = [
    BuildState::Queued,
    BuildState::Priming,
    BuildState::Running,
    BuildState::Paused,
    BuildState::Verifying,
];

/// A running attempt that may be stuck.
pub(super) struct RunningAttempt {
    pub(super) build: Build,
    pub(super) task: Task,
    pub(super) attempt: Attempt,
    /// When it last made progress, or began, or a person said to wait.
    pub(super) last_sign: DateTime<Utc>,
    /// Whether it waits for something; then it is not stuck.
    pub(super) waits: bool,
    /// The open question about it.
    pub(super) question: Option<Versioned<Question>>,
}

/// Loads an attempt that still is the one at its task; `None` once it has ended.
pub(super) async fn running(
    store: &Store,
    attempt: AttemptId,
) -> Result<Option<RunningAttempt>, ReadError> {
    let Some(attempt) = store.get::<Attempt>(&attempt_key(attempt)).await? else {
        return Ok(None);
    };
    let attempt = attempt.record;
    let Some(task) = task(store, attempt.build, &attempt.task).await? else {
        return Ok(None);
    };
    let Some(build) = build(store, attempt.build).await? else {
        return Ok(None);
    };
    if task.attempt != Some(attempt.id) || !RUNNING.contains(&attempt.state) {
        return Ok(None);
    }
    let of = (attempt.build, &attempt.task);
    let questions = questions_of(store, Trigger::TaskStuck, of).await?;
    let told_to_wait = questions
        .iter()
        .filter_map(|question| question.answer.as_ref())
        .filter(|answer| {
            choice::TaskStuck::of(answer.choice.as_ref()) == Some(choice::TaskStuck::Wait)
        })
        .map(|answer| answer.at);
    let signs = [task.progress_at, Some(attempt.started_at)]
        .into_iter()
        .flatten();
    let last_sign = signs
        .chain(told_to_wait)
        .max()
        .unwrap_or(attempt.started_at);
    let waiter = Party::Task {
        build: attempt.build,
        task: attempt.task.clone(),
    };
    let waits = locks::waits_of(store, &waiter).await?;
    Ok(Some(RunningAttempt {
        build: build.record,
        task: task.record,
        last_sign,
        waits: !waits.is_empty(),
        question: open(questions),
        attempt,
    }))
}

/// Loads the questions of one sort about a task.
async fn questions_of(
    store: &Store,
    trigger: Trigger,
    (build, task): (BuildId, &TaskId),
) -> Result<Vec<Versioned<Question>>, ReadError> {
    let about = About::Task {
        build,
        task: task.clone(),
    };
    let query = Query::new()
        .equal("build", build.to_string())
        .equal("trigger", trigger.as_str());
    let mut questions = store.list::<Question>(query).await?;
    questions.retain(|question| question.about == about);
    Ok(questions)
}

fn open(questions: Vec<Versioned<Question>>) -> Option<Versioned<Question>> {
    questions
        .into_iter()
        .find(|question| question.state == QuestionState::Pending)
}

/// Loads the open question of one sort about a task.
pub(super) async fn open_question(
    store: &Store,
    trigger: Trigger,
    of: (BuildId, &TaskId),
) -> Result<Option<Versioned<Question>>, ReadError> {
    Ok(open(questions_of(store, trigger, of).await?))
}

/// Loads the open questions about the key of a provider.
pub(super) async fn open_key_questions(
    store: &Store,
    provider: &str,
) -> Result<Vec<Versioned<Question>>, ReadError> {
    let open = Query::new()
        .equal("trigger", Trigger::ProviderKeyRefused.as_str())
        .equal("state", QuestionState::Pending.as_str());
    let mut questions = store.list::<Question>(open).await?;
    questions.retain(|question| question.topic.as_deref() == Some(provider));
    Ok(questions)
}

/// Loads a build.
pub(super) async fn build(
    store: &Store,
    build: BuildId,
) -> Result<Option<Versioned<Build>>, ReadError> {
    store.get::<Build>(&build.to_string()).await
}

/// Loads a task.
pub(super) async fn task(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Option<Versioned<Task>>, ReadError> {
    store.get::<Task>(&task_key(build, task)).await
}

/// Loads who owns a file; a build that was merged or given up owns nothing any more.
pub(super) async fn owner(store: &Store, file: &RepoPath) -> Result<Option<Claimant>, ReadError> {
    let owner = ownership::owner_of(store, file).await?;
    Ok(owner
        .filter(Owner::is_live)
        .and_then(|owner| owner.build)
        .map(|owner| Claimant {
            build: owner.id,
            priority: owner.priority,
        }))
}

/// Attempts by build, task and number.
type Attempts = BTreeMap<(BuildId, TaskId, u32), Attempt>;

/// The tasks of a dead loop, and who could take them.
pub(super) struct Orphans {
    pub(super) orphans: Vec<(Build, Task)>,
    pub(super) loads: Vec<Load>,
}

/// Loads what a dead loop leaves; `None` when it is no loop or lives again.
pub(super) async fn left_by(
    store: &Store,
    dead: &ComponentName,
    down_after: Duration,
    now: DateTime<Utc>,
) -> Result<Option<Orphans>, ReadError> {
    if !dead.is_loop() {
        return Ok(None);
    }
    let lives = |component: &Component| {
        let silent = (now - component.last_seen).to_std().unwrap_or_default();
        !component.stopped && silent < down_after
    };
    let components = store.list::<Component>(Query::new()).await?;
    let loops = || components.iter().filter(|row| row.name.is_loop());
    if loops().any(|row| row.name == *dead && lives(row)) {
        return Ok(None);
    }
    let tasks = open_tasks(store).await?;
    let attempts = latest_attempts(store).await?;
    let of = |name: &ComponentName, (_, task): &(Build, Task)| {
        belongs_to(task, &attempts).is_some_and(|holder| holder == name)
    };
    let loads = loops()
        .filter(|row| row.name != *dead && lives(row))
        .map(|row| Load {
            name: row.name.clone(),
            tasks: tasks.iter().filter(|task| of(&row.name, task)).count(),
        })
        .collect();
    let orphans = tasks
        .iter()
        .filter(|task| of(dead, task))
        .cloned()
        .collect();
    Ok(Some(Orphans { orphans, loads }))
}

/// Names the loop that runs a task, that it is assigned to, or that was interrupted at it.
fn belongs_to<'a>(task: &'a Task, attempts: &'a Attempts) -> Option<&'a ComponentName> {
    let last = attempts
        .get(&(task.build, task.id.clone(), task.attempts))
        .map(|attempt| &attempt.loop_name);
    match task.attempt {
        Some(_) => last,
        None => task.assigned_to.as_ref().or(last),
    }
}

/// Lists the tasks of live builds that still have something before them, in the order of the plan.
async fn open_tasks(store: &Store) -> Result<Vec<(Build, Task)>, ReadError> {
    let live = LIVE.iter().map(|state| state.as_str());
    let query = Query::new()
        .one_of("state", live)
        .order_by("priority")
        .order_by("created_at");
    let mut tasks = Vec::new();
    for build in store.list::<Build>(query).await? {
        let query = Query::new()
            .equal("build", build.id.to_string())
            .one_of("state", OPEN.iter().map(|state| state.as_str()))
            .order_by("number");
        for task in store.list::<Task>(query).await? {
            tasks.push((build.record.clone(), task.record));
        }
    }
    Ok(tasks)
}

/// Lists the attempts that run or were interrupted, by build, task and number.
async fn latest_attempts(store: &Store) -> Result<Attempts, ReadError> {
    let states = RUNNING.iter().chain(&[AttemptState::Interrupted]);
    let query = Query::new().one_of("state", states.map(|state| state.as_str()));
    let attempts = store.list::<Attempt>(query).await?;
    Ok(attempts
        .into_iter()
        .map(|row| row.record)
        .map(|attempt| {
            (
                (attempt.build, attempt.task.clone(), attempt.latest_try()),
                attempt,
            )
        })
        .collect())
}
