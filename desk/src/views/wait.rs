//! Who waits for what, as people see it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use ropewalk_coordination::graph::{Cycle, WaitGraph};
use ropewalk_coordination::waits::{self, Waits};
pub use ropewalk_coordination::waits::{PlanWaits, QuestionWait};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, Slug};
use ropewalk_store::{Query, ReadError, Record, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::{AT_ONCE, records};

/// Somebody who waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WaitRow {
    /// A task or a build.
    Party(Wait),
    /// Anything else that asks a person.
    Other(QuestionWait),
}

impl WaitRow {
    /// Returns what tells it from all others.
    pub fn name(&self) -> String {
        match self {
            Self::Party(wait) => wait.key(),
            Self::Other(asking) => asking.name(),
        }
    }

    /// Returns since when.
    pub const fn since(&self) -> DateTime<Utc> {
        match self {
            Self::Party(wait) => wait.since,
            Self::Other(asking) => asking.since,
        }
    }
}

/// Everybody who waits, and who waits for each other.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitsView {
    /// Tasks and builds.
    pub waits: Vec<Wait>,
    /// Whatever else asks a person.
    pub others: Vec<QuestionWait>,
    /// Those that wait for each other, by name.
    pub cycles: Vec<Vec<String>>,
}

/// Lists who waits for what, the longest first.
pub async fn list(store: &Store) -> Result<Vec<WaitRow>, ReadError> {
    Ok(rows(waits::all(store).await?))
}

/// Lists who waits for what, the longest first, without the tasks that wait for others of their plan; and how many those
/// are in each build.
pub async fn held(store: &Store) -> Result<(Vec<WaitRow>, Vec<PlanWaits>), ReadError> {
    let (waits, planned) = waits::held(store).await?;
    Ok((rows(waits), planned))
}

fn rows(waits: Waits) -> Vec<WaitRow> {
    let mut rows: Vec<WaitRow> = waits.parties.into_iter().map(WaitRow::Party).collect();
    rows.extend(waits.others.into_iter().map(WaitRow::Other));
    rows.sort_by_key(WaitRow::since);
    rows
}

/// Says in words for eyes what is waited for.
pub fn resource_in_words(resource: &Resource) -> String {
    match resource {
        Resource::Dependency { task } => format!("task {task}"),
        Resource::Lease { path } => format!("the lock of `{path}`"),
        Resource::Ownership { path } => format!("the owner of `{path}`"),
        Resource::Person { .. } => "an answer".to_owned(),
        Resource::Quota { provider } => format!("the quota of `{provider}`"),
        Resource::Budget { scope } => format!("the budget of {scope}"),
        Resource::Outage { provider } => format!("`{provider}`, which is away"),
    }
}

/// Says in words for eyes who waits or is waited for, by the ideas that builds are of.
pub fn party_in_words(party: &Party, ideas: &BTreeMap<BuildId, Slug>) -> String {
    let of = |build: &BuildId| {
        let idea = ideas.get(build).map(ToString::to_string);
        idea.unwrap_or_else(|| build.to_string())
    };
    match party {
        Party::Task { build, task } => format!("task {task} of {}", of(build)),
        Party::Build { build } => format!("the build of {}", of(build)),
    }
}

/// Reads of which ideas the builds are that wait, are waited for or hold one of `locks`.
pub async fn ideas_of(
    store: &Store,
    waits: &[WaitRow],
    locks: &[Lease],
) -> Result<BTreeMap<BuildId, Slug>, ReadError> {
    let parties = waits.iter().filter_map(|row| match row {
        WaitRow::Party(wait) => Some(std::iter::once(&wait.waiter).chain(&wait.holder)),
        WaitRow::Other(_) => None,
    });
    let holders = locks.iter().map(|lock| lock.holder.build);
    let builds: BTreeSet<BuildId> = parties.flatten().map(build_of).chain(holders).collect();
    let builds: Vec<BuildId> = builds.into_iter().collect();
    let mut ideas = BTreeMap::new();
    for part in builds.chunks(AT_ONCE) {
        let found = Query::new().one_of("key", part.iter().copied());
        let found = records(store.list::<Build>(found).await?).into_iter();
        ideas.extend(found.map(|build| (build.id, build.idea)));
    }
    Ok(ideas)
}

pub(super) const fn build_of(party: &Party) -> BuildId {
    match party {
        Party::Task { build, .. } | Party::Build { build } => *build,
    }
}

/// Loads who waits for whom, with the graph to draw it by.
pub async fn graph(store: &Store) -> Result<(WaitsView, WaitGraph), ReadError> {
    let Waits {
        parties: waits,
        others,
    } = waits::all(store).await?;
    let mut graph = WaitGraph::new(&waits);
    for asking in &others {
        graph.insert_asking(asking);
    }
    let cycles = graph.cycles().iter().map(Cycle::names).collect();
    let view = WaitsView {
        waits,
        others,
        cycles,
    };
    Ok((view, graph))
}
