//! Defines what the engine is given and what it gives back.

use std::collections::BTreeMap;
use std::sync::Arc;

use ropewalk_llm::{Effort, Message, Model, PriceTable, ScriptKey, StopReason, Usage};
use ropewalk_runtime::traces;
use ropewalk_schemas::{BuildId, CorrelationId, Slug, TaskId, trace};
use serde_json::Value;

use crate::submission::Submission;
use crate::tool::Toolbox;

/// Says what a model is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// What it costs by the names that it may answer with; one that is not in it has an unknown price.
    pub prices: PriceTable,
    /// How many tokens a conversation with it may have; none where that is unknown.
    pub window_tokens: Option<u64>,
    /// Whether it sees pictures.
    pub sees_images: bool,
}

impl ModelEntry {
    /// Returns what `usage` costs. The provider may answer with a more exact name than it was asked by, so both are
    /// looked up.
    pub(crate) fn micro_usd(&self, model: &str, usage: &Usage) -> Option<u64> {
        let cost = self.prices.cost(model, usage);
        cost.or_else(|| self.prices.cost(&self.name, usage))
            .map(|cost| cost.micro_usd)
    }

    /// Names it as the configuration does.
    pub(crate) fn configured_name(&self) -> String {
        format!("{}/{}", self.model.name(), self.name)
    }
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
    /// Those that take over for a role, in this order, while the ones before are away or their quota is used up.
    pub fallbacks: BTreeMap<ModelRole, Vec<ModelEntry>>,
    /// How hard the models of a role are to think, where that is said.
    pub efforts: BTreeMap<ModelRole, Effort>,
}

impl Models {
    /// Uses one model for every role.
    pub fn all(entry: ModelEntry) -> Self {
        Self {
            chat: entry.clone(),
            spec: entry.clone(),
            build: entry.clone(),
            small: entry,
            fallbacks: BTreeMap::new(),
            efforts: BTreeMap::new(),
        }
    }

    /// Lets `entries` take over for `role`, in this order.
    #[must_use]
    pub fn falling_back_to(mut self, role: ModelRole, entries: Vec<ModelEntry>) -> Self {
        self.fallbacks.insert(role, entries);
        self
    }

    /// Lists the roles with their models, those that take over among them.
    pub fn roles(&self) -> Vec<(ModelRole, &ModelEntry)> {
        let roles = [
            ModelRole::Chat,
            ModelRole::Spec,
            ModelRole::Build,
            ModelRole::Small,
        ];
        let ladder = |role| {
            self.ladder(role)
                .into_iter()
                .map(move |entry| (role, entry))
        };
        roles.into_iter().flat_map(ladder).collect()
    }

    /// Lists the models of `role`: the one to ask, then those that take over.
    pub fn ladder(&self, role: ModelRole) -> Vec<&ModelEntry> {
        let fallbacks = self.fallbacks.get(&role).into_iter().flatten();
        std::iter::once(self.of(role)).chain(fallbacks).collect()
    }

    /// Returns the narrowest window among those that do a role, in tokens; none where none is known.
    pub fn window_tokens(&self, role: ModelRole) -> Option<u64> {
        let ladder = self.ladder(role).into_iter();
        ladder.filter_map(|entry| entry.window_tokens).min()
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
    /// The chain of events that it belongs to.
    pub chain: Option<CorrelationId>,
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
            // A plan of thirty tasks, or a long file that is written whole, takes most of them.
            output_tokens: 32_000,
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

impl Job {
    /// Returns the trace context of its call `key`; none for a job that belongs to no chain.
    pub(crate) fn traceparent(&self, key: &str) -> Option<String> {
        let chain = self.scope.chain?;
        let is_sent = traces::is_sent(&trace::trace_id(chain));
        Some(trace::of_call(chain, key, is_sent))
    }
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
