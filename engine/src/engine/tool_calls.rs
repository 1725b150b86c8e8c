//! Runs the tool calls of one reply: safe ones side by side, the others alone, results in the order of the calls.

use std::pin::pin;

use futures::{FutureExt, StreamExt};
use ropewalk_llm::{Block, Image, ToolUse};
use tokio_util::sync::CancellationToken;

use super::early::EarlyCalls;
use super::progress::Progress as Moves;
use crate::error::EngineError;
use crate::event::{self, JobEvent, Observer};
use crate::job::Job;
use crate::tool::{Progress, ToolContext, ToolOutput};

/// The most calls that run side by side.
pub(super) const SIDE_BY_SIDE: usize = 8;

/// Is what the calls of one reply came to.
#[derive(Debug, Default)]
pub(super) struct ToolResults {
    /// A result for every call, in their order.
    pub(super) blocks: Vec<Block>,
    /// What each call that ran came to.
    pub(super) told: Vec<(String, ToolOutput)>,
    /// Whether one of them failed.
    pub(super) failed: bool,
    /// How many ran.
    pub(super) count: u32,
}

/// Runs `calls`, but those that were started early; those above the bound of the job get an error instead.
pub(super) async fn run(
    job: &Job,
    (calls, early): (&[ToolUse], EarlyCalls<'_>),
    moves: &mut Moves,
    cancel: &CancellationToken,
    observer: &dyn Observer,
) -> Result<ToolResults, EngineError> {
    let context = context(job, early.sees_images, cancel);
    let mut early = early.finish().await;
    let (taken, excess) = calls.split_at(calls.len().min(job.limits.calls_per_turn));
    let mut ran = ToolResults::default();
    for batch in batches(job, taken) {
        // Boxed one by one and not in a closure of the stream: through that the compiler cannot see that they are `Send`.
        let mut running = Vec::with_capacity(batch.len());
        for call in batch {
            running.push(match early.take(call) {
                Some(ended) => std::future::ready(ended).boxed(),
                None => one(job, call, &context, observer).boxed(),
            });
        }
        let mut outputs = futures::stream::iter(running).buffered(SIDE_BY_SIDE);
        while let Some(output) = outputs.next().await {
            let (id, output) = output?;
            if moves.made_by(&output) {
                observer.see(JobEvent::Progressed);
            }
            ran.count += 1;
            ran.push(
                &id,
                (output.text.clone(), output.images.clone()),
                output.is_error,
            );
            ran.told.push((id, output));
        }
    }
    for call in excess {
        let reason = format!(
            "not run: a reply may call {} tools; call it again in the next one",
            job.limits.calls_per_turn
        );
        observer.see(JobEvent::ToolSkipped {
            item: call.id.clone(),
            name: call.name.clone(),
            reason: reason.clone(),
        });
        ran.push(&call.id, (reason, Vec::new()), true);
    }
    Ok(ran)
}

/// Says what the tools of a reply know about their calls.
pub(super) fn context(job: &Job, sees_images: bool, cancel: &CancellationToken) -> ToolContext {
    ToolContext {
        work: job.journal_key.clone(),
        sees_images,
        cancel: cancel.child_token(),
        progress: Progress::default(),
    }
}

impl ToolResults {
    fn push(&mut self, id: &str, (content, images): (String, Vec<Image>), is_error: bool) {
        self.failed |= is_error;
        self.blocks.push(Block::ToolResult {
            tool_use_id: id.to_owned(),
            content,
            is_error,
            images,
        });
    }
}

/// Splits calls so that each unsafe one is alone and safe neighbours are together.
fn batches<'a>(job: &Job, calls: &'a [ToolUse]) -> Vec<&'a [ToolUse]> {
    calls
        .chunk_by(|a, b| job.tools.concurrency_safe(a) && job.tools.concurrency_safe(b))
        .collect()
}

pub(super) async fn one(
    job: &Job,
    call: &ToolUse,
    context: &ToolContext,
    observer: &dyn Observer,
) -> Result<(String, ToolOutput), EngineError> {
    if context.cancel.is_cancelled() {
        return Err(EngineError::Cancelled);
    }
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
