//! Runs one tool call, and tells its watcher of it.

use std::pin::pin;

use chrono::{DateTime, Utc};
use ropewalk_llm::ToolUse;
use ropewalk_runtime::Clock;
use tokio_util::sync::CancellationToken;

use crate::error::EngineError;
use crate::event::{self, Observer};
use crate::job::Job;
use crate::tool::{Progress, ToolContext, ToolOutput};
use crate::traced;

/// The most calls that run side by side.
pub(super) const SIDE_BY_SIDE: usize = 8;

/// Is the reply whose calls are run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallingReply {
    /// Whether the model sees pictures.
    pub(super) sees_images: bool,
    /// When it came, the same for whoever hears it from the journal; while it still comes, when it was asked for.
    pub(super) at: DateTime<Utc>,
}

/// Says what the tools of a reply know about their calls.
pub(super) fn context(job: &Job, reply: CallingReply, cancel: &CancellationToken) -> ToolContext {
    ToolContext {
        agent: job.journal_key.clone(),
        called_at: reply.at,
        closes_circle: false,
        sees_images: reply.sees_images,
        cancel: cancel.child_token(),
        progress: Progress::default(),
    }
}

/// Runs a call, until it has ended or is cancelled, unless it may not be run; returns its id with what it came to.
pub(super) async fn one(
    job: &Job,
    call: &ToolUse,
    (context, clock): (&ToolContext, &Clock),
    observer: &dyn Observer,
) -> Result<(String, ToolOutput), EngineError> {
    if context.cancel.is_cancelled() {
        return Err(EngineError::Cancelled);
    }
    let running = run(job, call, context, observer);
    traced::tool(job, (call, context.called_at), clock, running).await
}

async fn run(
    job: &Job,
    call: &ToolUse,
    context: &ToolContext,
    observer: &dyn Observer,
) -> Result<(String, ToolOutput), EngineError> {
    observer.see(event::tool_started(call));
    let (progress, mut pieces) = Progress::heard();
    let context = ToolContext {
        progress,
        ..context.clone()
    };
    let mut running = pin!(job.tools.run(call, &context));
    // A tool that is dropped gives up its work, and a command its whole process group.
    let output = loop {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(EngineError::Cancelled),
            Some(text) = pieces.recv() => observer.see(event::tool_updated(call, text)),
            output = &mut running => break output,
        }
    };
    let output = match output {
        Ok(output) => output,
        Err(reason) => return Err(EngineError::Ended { reason }),
    };
    for step in event::tool_ended(call, &output) {
        observer.see(step);
    }
    Ok((call.id.clone(), output))
}
