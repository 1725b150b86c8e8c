//! Puts a question to a person in the midst of a task; the answer is the result of the call, however long it takes.

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_runtime::in_hand;
use serde_json::Value;

use super::asker::{AskReply, Asker, TaskQuestion};
use super::workbench::Workbench;
use super::{arguments, plain_schema_of};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// The most bytes of a question with all that belongs to it.
const BYTES: usize = 8 * 1024;

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

    fn outlasts(&self) -> bool {
        true
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
            AskReply::Answered { told, changed } => {
                self.workbench.forget_files(&changed);
                Ok(ToolOutput::text(told))
            }
            AskReply::Ended(reason) => Err(ToolFailure::Ended(reason)),
        }
    }
}
