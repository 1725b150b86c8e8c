//! Lets a caller watch a job while it runs: one event for each step.

use ropewalk_llm::{Reply, StopReason, ToolUse};
use ropewalk_runtime::secrets;
use ropewalk_schemas::job_event::CallUsage;
pub use ropewalk_schemas::job_event::JobEvent;

use crate::tool::{Effect, ToolOutput};

/// Watches a job.
pub trait Observer: Send + Sync {
    /// Sees the next step; never waits.
    fn see(&self, event: JobEvent);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn see(&self, _: JobEvent) {}
}

/// Names the message of a turn.
pub(crate) fn message(turn: u32) -> String {
    format!("message-{turn}")
}

/// Tells that a reply has ended and what it cost.
pub(crate) fn message_ended(turn: u32, reply: &Reply, micro_usd: Option<u64>) -> JobEvent {
    JobEvent::MessageEnded {
        item: message(turn),
        text: reply.text(),
        calls: reply.tool_uses().map(|call| call.name.clone()).collect(),
        usage: CallUsage {
            model: reply.model.clone(),
            input_tokens: reply.usage.total_input_tokens(),
            output_tokens: reply.usage.output_tokens,
            micro_usd,
        },
    }
}

/// Tells that a tool begins.
pub(crate) fn tool_started(call: &ToolUse) -> JobEvent {
    JobEvent::ToolStarted {
        item: call.id.clone(),
        name: call.name.clone(),
        input: call.input.clone(),
    }
}

/// Tells what a tool says before it has ended.
pub(crate) fn tool_updated(call: &ToolUse, text: String) -> JobEvent {
    JobEvent::ToolUpdated {
        item: call.id.clone(),
        text,
    }
}

/// Tells what came of a call: the files that it changed, what it plans, then its end. Watchers are told no secret.
pub(crate) fn tool_ended(call: &ToolUse, output: &ToolOutput) -> Vec<JobEvent> {
    let struck = |text: &str| secrets::strike(text).into_owned();
    let changes = output.changes.iter().map(|change| JobEvent::FileChanged {
        item: call.id.clone(),
        path: change.path.to_string(),
        difference: struck(&change.difference),
    });
    let planned = match &output.effect {
        Effect::Planned(todos) => Some(JobEvent::TodoUpdated {
            item: call.id.clone(),
            todos: todos.clone(),
        }),
        _ => None,
    };
    let ended = JobEvent::ToolEnded {
        item: call.id.clone(),
        name: call.name.clone(),
        output: struck(&output.text),
        is_error: output.is_error,
        metadata: output.metadata.clone(),
    };
    changes.chain(planned).chain([ended]).collect()
}

/// Returns the name of the reason that a model stopped for.
pub(crate) fn stop_name(stop: &StopReason) -> String {
    match stop {
        StopReason::EndTurn => "end_turn".to_owned(),
        StopReason::ToolUse => "tool_use".to_owned(),
        StopReason::MaxTokens => "max_tokens".to_owned(),
        StopReason::ContentFilter => "content_filter".to_owned(),
        StopReason::Other(reason) => reason.clone(),
    }
}
