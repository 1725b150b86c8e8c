//! Defines what the engine is given and what it gives back.

use std::sync::Arc;

use ropewalk_llm::{Message, Model, PriceTable, ScriptKey, StopReason, Usage};
use ropewalk_schemas::{BuildId, Slug, TaskId};
use serde_json::Value;

use crate::submission::Submission;
use crate::tool::Toolbox;

/// Says what a model is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelRole {
    /// Talks with a person.
    Chat,
    /// Writes specifications.
    Spec,
    /// Writes code.
    Build,
    /// Does small jobs cheaply.
    Small,
}

impl ModelRole {
    /// Returns the name as the configuration and the usage rows write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Spec => "spec",
            Self::Build => "build",
            Self::Small => "small",
        }
    }
}

/// Is a model with the name it is asked by and its price.
#[derive(Clone)]
pub struct ModelEntry {
    /// Answers.
    pub model: Arc<dyn Model>,
    /// The model id as the provider knows it.
    pub name: String,
    /// What the models of its provider cost; a model that is not in it has an unknown price.
    pub prices: PriceTable,
}

impl std::fmt::Debug for ModelEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ModelEntry")
            .field("provider", &self.model.name())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Holds the model of every role.
#[derive(Debug, Clone)]
pub struct Models {
    /// For [`ModelRole::Chat`].
    pub chat: ModelEntry,
    /// For [`ModelRole::Spec`].
    pub spec: ModelEntry,
    /// For [`ModelRole::Build`].
    pub build: ModelEntry,
    /// For [`ModelRole::Small`].
    pub small: ModelEntry,
}

impl Models {
    /// Uses one model for every role.
    pub fn all(entry: ModelEntry) -> Self {
        Self {
            chat: entry.clone(),
            spec: entry.clone(),
            build: entry.clone(),
            small: entry,
        }
    }

    /// Lists the roles with their models.
    pub fn roles(&self) -> [(ModelRole, &ModelEntry); 4] {
        [
            ModelRole::Chat,
            ModelRole::Spec,
            ModelRole::Build,
            ModelRole::Small,
        ]
        .map(|role| (role, self.of(role)))
    }

    /// Returns a model of `provider`, if some role uses one.
    pub fn of_provider(&self, provider: &str) -> Option<&ModelEntry> {
        let mut entries = self.roles().into_iter().map(|(_, entry)| entry);
        entries.find(|entry| entry.model.name() == provider)
    }

    /// Returns the model of `role`.
    pub fn of(&self, role: ModelRole) -> &ModelEntry {
        match role {
            ModelRole::Chat => &self.chat,
            ModelRole::Spec => &self.spec,
            ModelRole::Build => &self.build,
            ModelRole::Small => &self.small,
        }
    }
}

/// Names what the tokens of a job are counted for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageScope {
    /// The idea.
    pub idea: Option<Slug>,
    /// The build.
    pub build: Option<BuildId>,
    /// The task.
    pub task: Option<TaskId>,
}

/// Bounds a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked.
    pub turns: u32,
    /// How many calls of one reply are run; the others get an error.
    pub calls_per_turn: usize,
    /// How many tokens one reply may have.
    pub output_tokens: u32,
    /// How many tokens the whole job may read and write; none for no bound.
    pub total_tokens: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 50,
            calls_per_turn: 50,
            output_tokens: 16_384,
            total_tokens: None,
        }
    }
}

/// Is one piece of work for a model.
#[derive(Debug, Clone)]
pub struct Job {
    /// Names the work, for example `attempt/<id>`: two runs with one key are one work, and the second replays what
    /// the first was answered.
    pub journal_key: String,
    /// Selects the model.
    pub role: ModelRole,
    /// Names the work for the scripted provider; the loop sets the turn.
    pub script: ScriptKey,
    /// What the tokens are counted for.
    pub scope: UsageScope,
    /// The system prompt.
    pub system: String,
    /// The conversation so far, the new question last.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Toolbox,
    /// The typed result that ends the job; none for a job that ends with text.
    pub submission: Option<Submission>,
    /// Its bounds.
    pub limits: Limits,
}

/// Is what a job came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the model said after its last tool.
    pub text: String,
    /// The accepted result of a job that has a submission; always there for such a job.
    pub submission: Option<Value>,
    /// How often the model was asked, replays included.
    pub turns: u32,
    /// How many tools ran.
    pub tool_calls: u32,
    /// What all replies used.
    pub usage: Usage,
    /// Why the last reply ended.
    pub stop: StopReason,
}
