//! Lets a caller watch a job while it runs.

use ropewalk_llm::{Reply, ToolUse};

use crate::tool::ToolOutput;

/// Watches a job; every method does nothing unless written.
pub trait Observer: Send + Sync {
    /// The model wrote more text.
    fn delta(&self, text: &str) {
        let _ = text;
    }

    /// A tool begins.
    fn tool_started(&self, call: &ToolUse) {
        let _ = call;
    }

    /// A tool has ended; the metadata of its output is only for the watcher.
    fn tool_ended(&self, call: &ToolUse, output: &ToolOutput) {
        let _ = (call, output);
    }

    /// The model has ended `reply`; what it writes after that belongs to the next one.
    fn replied(&self, reply: &Reply) {
        let _ = reply;
    }

    /// The work has moved: a file changed, a command gave a result that was not seen before, or a part of the code
    /// base was read for the first time. Words alone are no progress.
    fn progress(&self) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
