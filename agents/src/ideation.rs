//! Talks with a person until an idea is clear (seed pipeline §3).
//!
//! A message is one delivery: load the session, ask the model, keep what it heard, save what is sure, move the phase
//! by pure rules. People reach it through the `desk`.

mod act;
mod context;
mod earlier;
mod folder;
mod journaled;
mod prompt;

pub mod decide;
pub mod reply;

use async_trait::async_trait;
use ropewalk_config::QuestionTemplates;
use ropewalk_config::prompts::Prompts;
use ropewalk_desk::people::People;
use ropewalk_engine::Engine;
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload};
use ropewalk_store::ChangeSet;

use crate::places::Places;
use crate::repository::Repository;

/// How many conversations go on at the same time.
const IN_FLIGHT: usize = 8;

/// What the agent works with.
#[derive(Debug, Clone)]
pub struct IdeationOptions {
    /// Asks the model.
    pub engine: Engine,
    /// What the model is told.
    pub prompts: Prompts,
    /// What people are asked.
    pub templates: QuestionTemplates,
    /// When questions remind and end.
    pub deadlines: Deadlines,
    /// Where the idea folders lie.
    pub places: Places,
    /// The repository that the ideas are about; none while it has no commit.
    pub repository: Option<Repository>,
    /// Who may be reached by phone; none where no bot does so.
    pub phones: Option<People>,
}

/// The ideation agent.
#[derive(Debug)]
pub struct Ideation {
    role: ComponentName,
    options: IdeationOptions,
}

impl Ideation {
    /// Makes the agent.
    pub fn new(options: IdeationOptions) -> Result<Self, InvalidId> {
        Ok(Self {
            role: ComponentName::parse("ideation")?,
            options,
        })
    }
}

#[async_trait]
impl Agent for Ideation {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: ["ideation.message", "question.answered"]
                .map(EventPattern::of)
                .to_vec(),
            in_flight: IN_FLIGHT,
            schedules: Vec::new(),
        }
    }

    fn yields(&self) -> bool {
        true
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        match &event.payload {
            Payload::IdeationMessage(message) => {
                act::on_message(&self.options, message, context).await
            }
            Payload::QuestionAnswered(answer) => act::on_answer(answer, context).await,
            _ => Ok(ChangeSet::new()),
        }
    }
}
