//! Collects every wait: those that are written down, and those that follow from questions and tasks.
//!
//! A wait for a lock, an owner, a quota, a budget or an outage is a row, written and ended with what it waits for. A wait for a
//! person is an open blocking question, and a wait for a dependency is an edge of the plan to a task that is not
//! complete: rows of their own could only contradict those. Neither can close a cycle: people are sinks, and nobody
//! who waits for a dependency holds a lock. That the tasks of a build do not begin, since the provider is away, is the
//! row of the outage alone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, Slug, TaskId};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

/// The use of a model that builds.
const BUILDS: &str = "build";

/// The states of a task that waits for others of its plan.
const WAITS_FOR_OTHERS: [TaskState; 2] = [TaskState::Pending, TaskState::Blocked];

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

/// How many tasks of a build wait for others of its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWaits {
    /// The build.
    pub build: BuildId,
    /// Its idea.
    pub idea: Slug,
    /// The tasks that wait.
    pub tasks: u64,
}

/// Reads every wait, the longest first.
pub async fn all(store: &Store) -> Result<Waits, ReadError> {
    let builds = going_on(store).await?;
    let mut collection = written(store, &builds).await?;
    for build in &builds {
        let of_build = Query::new().equal("build", build.id.to_string());
        let tasks = store.list::<Task>(of_build).await?;
        let tasks: Vec<Task> = tasks.into_iter().map(|row| row.record).collect();
        for wait in between(build.id, build.created_at, &tasks) {
            collection.add(wait);
        }
    }
    Ok(collection.sorted())
}

/// Reads every wait but those of tasks for others of their plan, the longest first; and how many those are.
pub async fn held(store: &Store) -> Result<(Waits, Vec<PlanWaits>), ReadError> {
    let builds = going_on(store).await?;
    let collection = written(store, &builds).await?;
    let waiting = Query::new()
        .one_of("build", builds.iter().map(|build| build.id))
        .one_of("state", WAITS_FOR_OTHERS.map(TaskState::as_str));
    let mut waiting_of: BTreeMap<String, u64> = BTreeMap::new();
    for ([build, _], tasks) in store.count_by::<Task>(waiting, ["build", "state"]).await? {
        *waiting_of.entry(build.unwrap_or_default()).or_default() += tasks;
    }
    let planned = builds.iter().filter_map(|build| {
        Some(PlanWaits {
            build: build.id,
            idea: build.idea.clone(),
            tasks: waiting_of.get(&build.id.to_string()).copied()?,
        })
    });
    Ok((collection.sorted(), planned.collect()))
}

/// Waits, each of them once.
#[derive(Default)]
struct Collection {
    waits: Waits,
    known: HashSet<(Party, Resource)>,
}

impl Collection {
    /// Adds a wait unless it is known.
    fn add(&mut self, wait: Wait) {
        let edge = (wait.waiter.clone(), wait.resource.clone());
        if self.known.insert(edge) {
            self.waits.parties.push(wait);
        }
    }

    fn add_question(&mut self, question: &Question) {
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
                self.waits.others.push(QuestionWait {
                    waiter: other.clone(),
                    resource,
                    since,
                });
                return;
            }
        };
        self.add(Wait {
            waiter,
            resource,
            holder: None,
            since,
        });
    }

    fn sorted(self) -> Waits {
        let mut waits = self.waits;
        waits.parties.sort_by_key(|wait| wait.since);
        waits.others.sort_by_key(|asking| asking.since);
        waits
    }
}

/// Returns the builds that go on.
async fn going_on(store: &Store) -> Result<Vec<Build>, ReadError> {
    let states = BuildState::ALL.iter().filter(|state| !state.has_ended());
    let states = states.map(|state| state.as_str());
    let rows = store
        .list::<Build>(Query::new().one_of("state", states))
        .await?;
    Ok(rows.into_iter().map(|row| row.record).collect())
}

/// Collects what is a row, an open question or an outage.
async fn written(store: &Store, builds: &[Build]) -> Result<Collection, ReadError> {
    let mut collection = Collection::default();
    for row in store.list::<Wait>(Query::new()).await? {
        collection.add(row.record);
    }
    for question in blocking_questions(store).await? {
        collection.add_question(&question);
    }
    let outages = building_outages(store).await?;
    let running = builds
        .iter()
        .filter(|build| build.state == BuildState::Running);
    for build in running {
        for outage in &outages {
            collection.add(away(build.id, outage));
        }
    }
    Ok(collection)
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
        .filter(|task| WAITS_FOR_OTHERS.contains(&task.state));
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
