//! Collects every wait: those that are written down, and those that follow from questions and tasks.
//!
//! A wait for a lock, an owner, a quota, a budget or an outage is a row, written and ended with what it waits for. A wait for a
//! person is an open blocking question, and a wait for a dependency is an edge of the plan to a task that is not
//! complete: rows of their own could only contradict those. Neither can close a cycle: people are sinks, and nobody
//! who waits for a dependency holds a lock. That the tasks of a build do not begin, since the provider is away, is the
//! row of the outage alone.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

/// The use of a model that builds.
const BUILDS: &str = "build";

/// Who waits for what.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Waits {
    /// Builds and tasks that wait.
    pub parties: Vec<Wait>,
    /// What else waits for an answer.
    pub others: Vec<QuestionWait>,
}

/// What is no build and no task, and waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QuestionWait {
    /// What waits.
    pub waiter: About,
    /// The question.
    pub resource: Resource,
    /// Since when.
    pub since: DateTime<Utc>,
}

impl QuestionWait {
    /// Names what waits as builds and tasks are named.
    pub fn name(&self) -> String {
        match &self.waiter {
            About::Session { session } => format!("session/{session}"),
            About::Specification { spec } => format!("specification/{spec}"),
            About::Build { build } => format!("build/{build}"),
            About::Task { build, task } => format!("task/{build}/{task}"),
            About::Knowledge { item } => format!("knowledge/{item}"),
            About::Nothing => "project".to_owned(),
        }
    }
}

/// Reads every wait, the longest first.
pub async fn all(store: &Store) -> Result<Waits, ReadError> {
    let rows = store.list::<Wait>(Query::new()).await?;
    let mut waits = Waits {
        parties: rows.into_iter().map(|row| row.record).collect(),
        others: Vec::new(),
    };
    for question in blocking_questions(store).await? {
        add_question(&mut waits, &question);
    }
    let outages = building_outages(store).await?;
    let going_on = Query::new().one_of(
        "state",
        BuildState::ALL
            .iter()
            .filter(|state| goes_on(**state))
            .map(|state| state.as_str()),
    );
    for build in store.list::<Build>(going_on).await? {
        let of_build = Query::new().equal("build", build.id.to_string());
        let tasks = store.list::<Task>(of_build).await?;
        let tasks: Vec<Task> = tasks.into_iter().map(|row| row.record).collect();
        for wait in between(build.id, build.created_at, &tasks) {
            add(&mut waits.parties, wait);
        }
        for outage in outages
            .iter()
            .filter(|_| build.state == BuildState::Running)
        {
            add(&mut waits.parties, away(build.id, outage));
        }
    }
    waits.parties.sort_by_key(|wait| wait.since);
    waits.others.sort_by_key(|asking| asking.since);
    Ok(waits)
}

/// Returns the outages of providers that build: while one stands, no task of any build begins.
async fn building_outages(store: &Store) -> Result<Vec<Outage>, ReadError> {
    let rows = store.list::<Outage>(Query::new().equal("open", 1)).await?;
    let builds = |outage: &Outage| outage.roles.iter().any(|role| role == BUILDS);
    let outages = rows.into_iter().map(|row| row.record);
    Ok(outages.filter(builds).collect())
}

fn away(build: BuildId, outage: &Outage) -> Wait {
    Wait {
        waiter: Party::Build { build },
        resource: Resource::Outage {
            provider: outage.provider.clone(),
        },
        holder: None,
        since: outage.since,
    }
}

/// Returns the open questions that hold something up.
pub async fn blocking_questions(store: &Store) -> Result<Vec<Question>, ReadError> {
    let open = Query::new()
        .equal("state", QuestionState::Pending.as_str())
        .equal("kind", QuestionKind::Blocking.as_str());
    let rows = store.list::<Question>(open).await?;
    Ok(rows.into_iter().map(|row| row.record).collect())
}

const fn goes_on(state: BuildState) -> bool {
    !matches!(
        state,
        BuildState::Succeeded | BuildState::Failed | BuildState::Stopped
    )
}

fn add_question(waits: &mut Waits, question: &Question) {
    let resource = Resource::Person {
        question: question.id,
    };
    let since = question.asked_at;
    let waiter = match &question.about {
        About::Build { build } => Party::Build { build: *build },
        About::Task { build, task } => Party::Task {
            build: *build,
            task: task.clone(),
        },
        other => {
            waits.others.push(QuestionWait {
                waiter: other.clone(),
                resource,
                since,
            });
            return;
        }
    };
    let wait = Wait {
        waiter,
        resource,
        holder: None,
        since,
    };
    add(&mut waits.parties, wait);
}

/// Adds a wait unless the detector knows it.
fn add(waits: &mut Vec<Wait>, wait: Wait) {
    let known = waits
        .iter()
        .any(|known| known.waiter == wait.waiter && known.resource == wait.resource);
    if !known {
        waits.push(wait);
    }
}

/// Returns the waits of the tasks of one build for each other.
fn between(build: BuildId, since: DateTime<Utc>, tasks: &[Task]) -> Vec<Wait> {
    let states: BTreeMap<&TaskId, TaskState> =
        tasks.iter().map(|task| (&task.id, task.state)).collect();
    let done = |task: &TaskId| {
        states
            .get(task)
            .is_none_or(|state| *state == TaskState::Complete)
    };
    let waiting = tasks
        .iter()
        .filter(|task| matches!(task.state, TaskState::Pending | TaskState::Blocked));
    waiting
        .flat_map(|task| {
            let needed: BTreeSet<&TaskId> = task
                .block
                .depends_on
                .iter()
                .filter(|id| !done(id))
                .collect();
            needed.into_iter().map(move |id| Wait {
                waiter: Party::Task {
                    build,
                    task: task.id.clone(),
                },
                resource: Resource::Dependency { task: id.clone() },
                holder: Some(Party::Task {
                    build,
                    task: id.clone(),
                }),
                since,
            })
        })
        .collect()
}
