//! Learns from what was built (seed pipeline §6): reviews every build once, confirms and weighs lessons, keeps metrics.
//!
//! What follows by rule follows without a model. A model only adds what rules cannot see, and a review is written
//! whether or not it answers.

mod act;
mod context;
mod prompt;

pub mod decide;
pub mod findings;

use async_trait::async_trait;
use ropewalk_config::{Prompts, QuestionTemplates};
use ropewalk_engine::Engine;
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, Schedule, timers};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId};
use ropewalk_store::ChangeSet;

use crate::repository::Repository;

/// The schedule of the weekly summary.
pub const WEEKLY: &str = "improvement.weekly";
/// Mondays at 06:00 UTC.
const WEEKLY_CRON: &str = "0 6 * * Mon";
/// The events that the agent takes.
const TAKES: &[&str] = &[
    "build.completed",
    "ideation.completed",
    "spec.generated",
    "spec.rejected",
    "task.failed",
    "task.skipped",
    "task.completed",
    "schedule.due",
    "question.answered",
    "question.defaulted",
];
/// How many deliveries are handled at once.
const IN_FLIGHT: usize = 4;

/// What the agent works with.
#[derive(Debug, Clone)]
pub struct ImprovementOptions {
    /// Asks the model.
    pub engine: Engine,
    /// What the model is told.
    pub prompts: Prompts,
    /// What people are asked.
    pub templates: QuestionTemplates,
    /// When questions remind and end.
    pub deadlines: Deadlines,
    /// The repository that builds change.
    pub repository: Repository,
}

/// The improvement agent.
#[derive(Debug)]
pub struct Improvement {
    role: ComponentName,
    patterns: Vec<EventPattern>,
    options: ImprovementOptions,
}

impl Improvement {
    /// Makes the agent.
    pub fn new(options: ImprovementOptions) -> Result<Self, InvalidId> {
        Ok(Self {
            role: ComponentName::parse("improvement")?,
            patterns: timers::patterns(TAKES.iter().copied(), "improvement")?,
            options,
        })
    }
}

#[async_trait]
impl Agent for Improvement {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: self.patterns.clone(),
            in_flight: IN_FLIGHT,
            schedules: vec![Schedule {
                name: WEEKLY.to_owned(),
                cron: WEEKLY_CRON.to_owned(),
            }],
        }
    }

    fn yields(&self) -> bool {
        true
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        act::handle(&self.options, event, context).await
    }
}
