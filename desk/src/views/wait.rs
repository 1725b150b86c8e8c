//! Who waits for what, as people see it.

use chrono::{DateTime, Utc};
use ropewalk_coordination::graph::{Cycle, WaitGraph};
pub use ropewalk_coordination::waits::PlanWaits;
use ropewalk_coordination::waits::{self, QuestionWait, Waits};
use ropewalk_schemas::wait::Wait;
use ropewalk_store::{ReadError, Record, Store};
use schemars::JsonSchema;
use serde::Serialize;

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
