//! Puts a question to a person in the midst of a task; the answer is the result of the call, however long it takes.

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_runtime::in_hand;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::workbench::Workbench;
use super::{arguments, plain_schema_of};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// The most options of one question.
const OPTIONS: usize = 8;
/// The most bytes of a question with all that belongs to it.
const BYTES: usize = 8 * 1024;

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
    /// What was answered, and what has changed meanwhile.
    Answered(String),
    /// The work must stop now, for this reason; it goes on here once there is an answer.
    Ended(String),
}

/// Puts questions.
pub(super) struct Ask {
    workbench: Workbench,
    asker: Arc<dyn Asker>,
}

impl Ask {
    pub(super) fn new(workbench: Workbench, asker: Arc<dyn Asker>) -> Self {
        Self { workbench, asker }
    }
}

#[async_trait]
impl Tool for Ask {
    fn name(&self) -> &'static str {
        "ask"
    }

    fn description(&self) -> &'static str {
        "Puts a question to a person and waits for the answer, which may take hours: nothing of your work is lost, \
         and you go on here with the answer. Ask only what neither the task nor the repository says and what would make \
         the work wrong if you guessed; decide everything else yourself."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<TaskQuestion>()
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let question: TaskQuestion = arguments(value)?;
        let options = question.options.iter();
        let told = options
            .map(|option| option.label.len() + option.meaning.as_ref().map_or(0, String::len));
        if question.question.len() + question.why.len() + told.sum::<usize>() > BYTES {
            return Err(ToolFailure::refused(format!(
                "the question has more than {BYTES} bytes; say it shorter"
            )));
        }
        let number = self.workbench.asks();
        match in_hand::aside(self.asker.ask(number, &question)).await {
            AskReply::Answered(text) => {
                // Hours may lie between: whatever was read may stand differently now.
                self.workbench.forget();
                Ok(ToolOutput::text(text))
            }
            AskReply::Ended(reason) => Err(ToolFailure::Ended(reason)),
        }
    }
}
