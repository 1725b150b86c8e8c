//! The port through which questions of a model reach a person.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

/// The most options of one question.
const OPTIONS: usize = 8;

/// A question of a model that works on a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskQuestion {
    /// The question, as the person reads it: they see neither your conversation nor your files.
    #[schemars(length(min = 1))]
    pub question: String,
    /// What depends on the answer.
    #[schemars(length(min = 1))]
    pub why: String,
    /// What the person may choose; any other words are an answer as well.
    #[serde(default)]
    #[schemars(length(max = OPTIONS))]
    pub options: Vec<TaskOption>,
}

/// One answer that a person may choose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskOption {
    /// The answer, in a few words.
    #[schemars(length(min = 1))]
    pub label: String,
    /// What follows from it.
    #[serde(default)]
    pub meaning: Option<String>,
}

/// Brings the questions of a model to a person.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Puts the question `number`, from 1, of a conversation, or returns the answer where there is one.
    async fn ask(&self, number: u32, question: &TaskQuestion) -> AskReply;
}

/// Says what came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskReply {
    /// There is an answer.
    Answered {
        /// What was answered, and what the model has to know beside it.
        told: String,
        /// The files that others changed meanwhile, relative to the repository.
        changed: Vec<String>,
    },
    /// The work must stop now, for this reason; it goes on here once there is an answer.
    Ended(String),
}
