//! Keeps a list of what is to be done in a long work, before the eyes of the model and of those who watch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ropewalk_schemas::job_event::Todo;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{arguments, plain_schema_of};
use crate::tool::{Effect, Tool, ToolContext, ToolFailure, ToolOutput};

/// The most entries.
const MOST: usize = 50;
/// The longest entry, in bytes.
const LONGEST: usize = 300;

/// The list of one work. A work that runs again after a crash makes it anew, call by call.
#[derive(Debug, Clone, Default)]
pub(super) struct TodoList(Arc<Mutex<Vec<Todo>>>);

impl TodoList {
    fn entries(&self) -> MutexGuard<'_, Vec<Todo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the list.
pub(super) struct TodoWrite(pub(super) TodoList);

/// Shows the list.
pub(super) struct TodoRead(pub(super) TodoList);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// the whole list, in order
    #[schemars(length(max = MOST))]
    todos: Vec<Todo>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[async_trait]
impl Tool for TodoWrite {
    fn name(&self) -> &'static str {
        "todo_write"
    }

    fn description(&self) -> &'static str {
        "Keeps your list of what is to be done; it replaces the one before. It stays with you however long the work \
         takes. Use it where the work has more than a few steps, and mark each as you come to it."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let fits = |todo: &Todo| !todo.text.trim().is_empty() && todo.text.len() <= LONGEST;
        if !wanted.todos.iter().all(fits) {
            return Err(ToolFailure::refused(format!(
                "each entry has 1 to {LONGEST} bytes of text; nothing was changed"
            )));
        }
        self.0.entries().clone_from(&wanted.todos);
        Ok(ToolOutput::text("kept").with_effect(Effect::Planned(wanted.todos)))
    }
}

#[async_trait]
impl Tool for TodoRead {
    fn name(&self) -> &'static str {
        "todo_read"
    }

    fn description(&self) -> &'static str {
        "Shows your list of what is to be done."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Nothing>()
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let Nothing {} = arguments(value)?;
        let entries = self.0.entries();
        let lines: Vec<String> = entries.iter().map(ToString::to_string).collect();
        let told = if lines.is_empty() {
            "[the list is empty]".to_owned()
        } else {
            lines.join("\n")
        };
        Ok(ToolOutput::text(told).with_effect(Effect::Nothing))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn the_list_is_what_was_written_last_and_a_wrong_one_changes_nothing() {
        let bench = Bench::new(&[], &[]);
        let list = TodoList::default();
        let (write, read) = (TodoWrite(list.clone()), TodoRead(list));
        let shown = bench.run(&read, json!({})).await;
        assert_eq!(shown.text, "[the list is empty]");
        let todos = json!([
            { "text": "look around", "state": "done" },
            { "text": "write it", "state": "doing" },
            { "text": "test it", "state": "open" },
        ]);
        let written = bench.run(&write, json!({ "todos": todos })).await;
        let Effect::Planned(planned) = &written.effect else {
            panic!("{written:?}");
        };
        assert_eq!(planned.len(), 3);
        for text in ["", "  ", "x".repeat(LONGEST + 1).as_str()] {
            let todos = json!([{ "text": text, "state": "open" }]);
            let refused = bench.run(&write, json!({ "todos": todos })).await;
            assert!(refused.is_error, "{text}");
        }
        let shown = bench.run(&read, json!({})).await;
        assert_eq!(shown.text, "[x] look around\n[>] write it\n[ ] test it");
        bench.run(&write, json!({ "todos": [] })).await;
        let shown = bench.run(&read, json!({})).await;
        assert_eq!(shown.text, "[the list is empty]");
    }
}
