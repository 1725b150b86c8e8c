//! Turns an idea into a specification that a person can approve and loops can build (seed pipeline §4).
//!
//! A request is one delivery: load every document, ask the model for a typed plan, check it, put lessons into its
//! tasks, render spec.md and tasks.md, and say what it will cost. People reach it through the `desk`.

mod act;
mod answers;
mod context;
mod dry_run;
mod earlier;
mod lessons;
mod migrations;
mod order;
mod price;
mod prompt;
mod standing;

pub mod sources;
pub mod submission;
pub mod validate;

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_config::stack::StackProfiles;
use ropewalk_config::{Prompts, QuestionTemplates};
use ropewalk_engine::Engine;
use ropewalk_gate::runner::GateRunner;
use ropewalk_gate::shell::Shell;
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload};
use ropewalk_store::ChangeSet;

use crate::places::Places;
use crate::repository::Repository;

pub use price::{TaskCost, estimate};
pub use standing::BaseBuild;

/// How many specifications are written at the same time.
const IN_FLIGHT: usize = 2;

/// What the agent works with.
#[derive(Debug, Clone)]
pub struct SpecificationOptions {
    /// Asks the model.
    pub engine: Engine,
    /// What the model is told.
    pub prompts: Prompts,
    /// What people are asked.
    pub templates: QuestionTemplates,
    /// The kinds of projects that are known.
    pub stacks: StackProfiles,
    /// When questions remind and end.
    pub deadlines: Deadlines,
    /// Where the idea folders lie.
    pub places: Places,
    /// The user's repository.
    pub repository: Repository,
    /// The shell that checks run in.
    pub shell: Shell,
    /// Whether the project describes how a test runner of its own speaks.
    pub own_runner: bool,
    /// Tries the checks of a plan, and knows who may install packages.
    pub gate: Arc<GateRunner>,
    /// Whether a complete ideation asks for a specification by itself.
    pub auto_generate: bool,
    /// How often the model may mend a specification that fails its validation.
    pub repairs: u32,
    /// Which lessons go into tasks.
    pub lessons: LessonOptions,
}

/// Says which lessons go into tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LessonOptions {
    /// The least confidence.
    pub minimum: f64,
    /// The most in one task.
    pub per_task: usize,
    /// Whether a lesson is left out now and then to measure its effect.
    pub hold_out: bool,
}

/// The specification agent.
#[derive(Debug)]
pub struct SpecificationWriter {
    role: ComponentName,
    options: SpecificationOptions,
}

impl SpecificationWriter {
    /// Makes the agent.
    pub fn new(options: SpecificationOptions) -> Result<Self, InvalidId> {
        Ok(Self {
            role: ComponentName::parse("specification")?,
            options,
        })
    }
}

#[async_trait]
impl Agent for SpecificationWriter {
    fn profile(&self) -> Profile {
        let mut patterns = vec![
            EventPattern::of("spec.requested"),
            EventPattern::of("spec.revision_requested"),
            EventPattern::of("spec.approved"),
            EventPattern::of("question.answered"),
            EventPattern::of("question.defaulted"),
        ];
        if self.options.auto_generate {
            patterns.push(EventPattern::of("ideation.completed"));
        }
        Profile {
            role: self.role.clone(),
            patterns,
            in_flight: IN_FLIGHT,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        match &event.payload {
            Payload::SpecRequested(asked) => {
                act::requested(&self.options, asked.spec_id, context).await
            }
            Payload::SpecRevisionRequested(asked) => {
                act::requested(&self.options, asked.spec_id, context).await
            }
            Payload::SpecApproved(approved) => {
                act::approved(&self.options, approved, context).await
            }
            Payload::QuestionAnswered(answer) | Payload::QuestionDefaulted(answer) => {
                answers::on_answer(&self.options, answer, context).await
            }
            Payload::IdeationCompleted(completed) => {
                act::on_ideation_completed(&self.options, completed, context).await
            }
            _ => Ok(ChangeSet::new()),
        }
    }
}
