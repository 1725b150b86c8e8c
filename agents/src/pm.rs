//! Decides what stands between builds and their progress (seed pipeline §8): stuck tasks, contested files, dead loops,
//! cycles of waits, builds that failed. It asks people where it may not decide, and speaks to others only by events.

mod act;
mod context;

pub mod decide;

use std::time::Duration;

use async_trait::async_trait;
use ropewalk_config::QuestionTemplates;
use ropewalk_config::settings::{MonitorSettings, PmSettings};
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, timers};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId};
use ropewalk_store::ChangeSet;

use decide::StuckLimits;

/// The timer on which a stuck task is looked at again; its target is the attempt.
pub const STUCK: &str = "pm.stuck";
/// The events that the agent takes.
const TAKES: &[&str] = &[
    "alert.*",
    "conflict.detected",
    "change.requested",
    "decision.requested",
    "build.completed",
    "schedule.due",
    "question.answered",
    "question.defaulted",
];
/// How many deliveries are handled at once; each one is short.
const IN_FLIGHT: usize = 8;

/// What PM keeps to.
#[derive(Debug, Clone)]
pub struct PmOptions {
    /// How long a stuck task is watched.
    pub stuck: StuckLimits,
    /// A loop without a sign of life for this long gets no work.
    pub component_down_after: Duration,
    /// The questions it may ask.
    pub templates: QuestionTemplates,
    /// When questions remind and end.
    pub deadlines: Deadlines,
}

impl PmOptions {
    /// Takes what the configuration says.
    pub fn new(
        pm: &PmSettings,
        monitor: &MonitorSettings,
        templates: QuestionTemplates,
        deadlines: Deadlines,
    ) -> Self {
        let minutes = |minutes: u32| Duration::from_mins(u64::from(minutes));
        Self {
            stuck: StuckLimits {
                watch_every: minutes(pm.watch_minutes),
                ask_after: minutes(pm.ask_minutes),
                interrupt_after: minutes(pm.interrupt_minutes),
            },
            component_down_after: Duration::from_secs(u64::from(monitor.component_down_seconds)),
            templates,
            deadlines,
        }
    }
}

/// PM.
#[derive(Debug)]
pub struct Pm {
    role: ComponentName,
    patterns: Vec<EventPattern>,
    options: PmOptions,
}

impl Pm {
    /// Makes the agent.
    pub fn new(options: PmOptions) -> Result<Self, InvalidId> {
        Ok(Self {
            role: ComponentName::parse("pm")?,
            patterns: timers::patterns(TAKES.iter().copied(), "pm")?,
            options,
        })
    }
}

#[async_trait]
impl Agent for Pm {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: self.patterns.clone(),
            in_flight: IN_FLIGHT,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        act::handle(&self.options, event, context).await
    }
}
