//! Defines agents as the registry shows them (seed pipeline §1.2, design §6).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ComponentName;
use crate::state::states;

/// How the names of build loops begin, and of no other component.
pub const LOOP_PREFIX: &str = "loop-";

/// Seconds between two signs of life of a process.
pub const HEARTBEAT_SECONDS: u32 = 15;

impl ComponentName {
    /// Returns whether it names a build loop.
    pub fn is_loop(&self) -> bool {
        self.as_str().starts_with(LOOP_PREFIX)
    }
}

states! {
    /// Says what an agent does.
    AgentState ("agent") {
        /// It waits for work.
        Idle = "idle" => [Loading],
        /// It loads its context.
        Loading = "loading" => [Active, Error],
        /// It works.
        Active = "active" => [Complete, Error],
        /// It is done.
        Complete = "complete" => [Idle],
        /// It failed.
        Error = "error" => [Idle],
    }
}

/// A running part as the registry shows it: an agent or a build loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// Names it.
    pub name: ComponentName,
    /// The agent role, for example `build`.
    pub role: String,
    /// The process it runs in.
    pub process: String,
    /// What it does.
    pub state: AgentState,
    /// The entity it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_on: Option<String>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Its last sign of life.
    pub last_seen: DateTime<Utc>,
    /// Whether it was stopped in order, so that its silence is no alarm.
    pub stopped: bool,
}
