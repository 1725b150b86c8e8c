//! Runs the tool calls of one reply: safe ones side by side, the others alone, results in the order of the calls.

use futures::{FutureExt, StreamExt};
use ropewalk_llm::{Block, Image, ToolUse};
use tokio_util::sync::CancellationToken;

use super::early::EarlyCalls;
use super::progress::Progress as Moves;
use super::tool_call::{self, SIDE_BY_SIDE};
use crate::error::EngineError;
use crate::event::{JobEvent, Observer};
use crate::job::Job;
use crate::tool::{ToolContext, ToolOutput};

/// Is what the calls of one reply came to.
#[derive(Debug, Default)]
pub(super) struct ToolResults {
    /// A result for every call, in their order.
    pub(super) blocks: Vec<Block>,
    /// What each call that ran came to.
    pub(super) outputs: Vec<(String, ToolOutput)>,
    /// Whether one of them failed.
    pub(super) failed: bool,
    /// How many ran.
    pub(super) count: u32,
}

/// The calls of one reply that are to be run.
pub(super) struct Calls<'a, 'e> {
    /// All of them.
    pub(super) all: &'a [ToolUse],
    /// Of each that may be run, whether it closes a circle.
    pub(super) circles: &'a [bool],
    /// What was started early.
    pub(super) early: EarlyCalls<'e>,
}

/// Runs `calls`, but those that were started early; those above the bound of the job get an error instead.
pub(super) async fn run(
    job: &Job,
    calls: Calls<'_, '_>,
    moves: &mut Moves,
    cancel: &CancellationToken,
    observer: &dyn Observer,
) -> Result<ToolResults, EngineError> {
    let context = tool_call::context(job, calls.early.reply, cancel);
    let clock = calls.early.clock;
    let circling = ToolContext {
        closes_circle: true,
        ..context.clone()
    };
    let mut early = calls.early.finish().await;
    let (taken, excess) = calls.all.split_at(calls.circles.len());
    let mut circles = calls.circles.iter();
    let mut ran = ToolResults::default();
    for batch in batches(job, taken) {
        // Boxed one by one and not in a closure of the stream: through that the compiler cannot see that they are `Send`.
        let mut running = Vec::with_capacity(batch.len());
        for (call, closes_circle) in batch.iter().zip(&mut circles) {
            let context = if *closes_circle { &circling } else { &context };
            running.push(match early.take(call) {
                Some(ended) => std::future::ready(ended).boxed(),
                None => tool_call::one(job, call, (context, clock), observer).boxed(),
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
            ran.outputs.push((id, output));
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
