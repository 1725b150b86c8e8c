//! Builds as people see them.

use ropewalk_schemas::Slug;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::model_call::Spending;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::records;
use super::trace::{Trace, Traced};

/// A build in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildRow {
    /// The build.
    #[serde(flatten)]
    pub build: Build,
    /// How many tasks it has.
    pub tasks_total: u64,
    /// How many of them are complete.
    pub tasks_complete: u64,
    /// The outage that it stands still for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}

/// A build with its tasks, and what it has to show.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildView {
    /// The build.
    #[serde(flatten)]
    pub build: Build,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// What it has used so far.
    pub spending: Spending,
    /// What it has to show for each requirement.
    pub requirements: Vec<Traced>,
    /// The outage that it stands still for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}

/// Lists the builds, of one idea or of all, the oldest first; `providers` are those who build.
pub async fn list(
    store: &Store,
    idea: Option<&Slug>,
    providers: &[String],
) -> Result<Vec<BuildRow>, ReadError> {
    let mut query = Query::new().order_by("created_at");
    if let Some(idea) = idea {
        query = query.equal("idea", idea.as_str());
    }
    let outage = standing(store, providers).await?;
    let mut rows = Vec::new();
    for build in records(store.list::<Build>(query).await?) {
        let tasks = Query::new().equal("build", build.id.to_string());
        let complete = tasks.clone().equal("state", TaskState::Complete.as_str());
        rows.push(BuildRow {
            tasks_total: store.count::<Task>(tasks).await?,
            tasks_complete: store.count::<Task>(complete).await?,
            outage: holding(&build, outage.as_ref()).cloned(),
            build,
        });
    }
    Ok(rows)
}

/// Loads what belongs to a build; `providers` are those who build.
pub async fn show(
    store: &Store,
    build: Build,
    providers: &[String],
) -> Result<BuildView, ReadError> {
    let (tasks, trace) = trace(store, &build).await?;
    let calls = Query::new().equal("build", build.id.to_string());
    let outage = standing(store, providers).await?;
    Ok(BuildView {
        spending: store.spending(calls).await?,
        requirements: trace.all(),
        outage: holding(&build, outage.as_ref()).cloned(),
        build,
        tasks,
    })
}

/// Loads the tasks of a build, and what it has to show.
pub async fn trace(store: &Store, build: &Build) -> Result<(Vec<Task>, Trace), ReadError> {
    let of_build = Query::new()
        .equal("build", build.id.to_string())
        .order_by("number");
    let tasks = records(store.list::<Task>(of_build).await?);
    let trace = Trace::load(store, build, &tasks).await?;
    Ok((tasks, trace))
}

/// Returns the first outage, if all of them are away.
async fn standing(store: &Store, providers: &[String]) -> Result<Option<Outage>, ReadError> {
    let mut first = None;
    for provider in providers {
        let row = store.get::<Outage>(provider).await?;
        match row.map(|row| row.record).filter(Outage::stands) {
            Some(outage) => first = first.or(Some(outage)),
            None => return Ok(None),
        }
    }
    Ok(first)
}

/// Returns the outage if `build` stands still for it.
fn holding<'a>(build: &Build, outage: Option<&'a Outage>) -> Option<&'a Outage> {
    let waits = match build.state {
        BuildState::Running => true,
        BuildState::Paused => build.pause_reason == Some(PauseReason::Outage),
        _ => false,
    };
    outage.filter(|_| waits)
}
