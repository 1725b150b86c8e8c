//! Starts calls that only read while the reply that makes them still comes (LOOP-2 of the capability list).
//!
//! Whatever else is called waits until the reply is in the journal, and so does all that is called after it.

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use ropewalk_llm::ToolUse;
use ropewalk_runtime::{Clock, secrets};
use tokio_util::sync::CancellationToken;

use super::repetition::Repetition;
use super::tool_call::{self, CallingReply, SIDE_BY_SIDE};
use crate::error::EngineError;
use crate::event::{JobEvent, Observer};
use crate::job::Job;
use crate::tool::{ToolContext, ToolOutput};

/// The calls of one reply that were started before it was whole.
pub(super) struct EarlyCalls<'a> {
    /// The reply.
    pub(super) reply: CallingReply,
    /// Tells when calls begin and end.
    pub(super) clock: &'a Clock,
    /// None once nothing is started early any more.
    starter: Option<Starter<'a>>,
    started: Vec<ToolUse>,
    running: FuturesUnordered<BoxFuture<'a, EarlyResult>>,
    done: Vec<EarlyResult>,
}

/// What a call came to that was started early.
pub(super) struct EarlyResult {
    call: ToolUse,
    output: Result<(String, ToolOutput), EngineError>,
}

struct Starter<'a> {
    job: &'a Job,
    observer: &'a dyn Observer,
    context: ToolContext,
    repetition: Repetition,
    /// So many calls of the reply may still be run.
    left: usize,
}

impl<'a> EarlyCalls<'a> {
    /// Starts nothing early.
    pub(super) fn none(reply: CallingReply, clock: &'a Clock) -> Self {
        Self {
            reply,
            clock,
            starter: None,
            started: Vec::new(),
            running: FuturesUnordered::new(),
            done: Vec::new(),
        }
    }

    /// Starts calls of the next reply; `repetition` tells of the calls before.
    pub(super) fn of(
        job: &'a Job,
        (reply, repetition): (CallingReply, &Repetition),
        clock: &'a Clock,
        cancel: &CancellationToken,
        observer: &'a dyn Observer,
    ) -> Self {
        let starter = Starter {
            job,
            observer,
            context: tool_call::context(job, reply, cancel),
            repetition: repetition.clone(),
            left: job.limits.calls_per_turn,
        };
        Self {
            starter: Some(starter),
            ..Self::none(reply, clock)
        }
    }

    /// Hears the next call of the reply, and starts it where it only reads and nothing before it has to be waited for.
    pub(super) fn hear(&mut self, call: &ToolUse) {
        let Some(starter) = &mut self.starter else {
            return;
        };
        // As the journal will have it.
        let mut call = call.clone();
        secrets::strike_json(&mut call.input);
        let may = starter.left > 0
            && starter.job.tools.only_reads(&call)
            && !starter.repetition.repeats(&call);
        if !may {
            self.starter = None;
            return;
        }
        starter.left -= 1;
        if self.running.len() == SIDE_BY_SIDE {
            return;
        }
        let (job, observer, context) = (starter.job, starter.observer, starter.context.clone());
        let clock = self.clock;
        self.started.push(call.clone());
        let running = async move {
            let output = tool_call::one(job, &call, (&context, clock), observer).await;
            EarlyResult { call, output }
        };
        self.running.push(running.boxed());
    }

    /// Goes on with what was started until something of it has ended; waits for ever while nothing runs.
    pub(super) async fn go_on(&mut self) {
        match self.running.next().await {
            Some(result) => self.done.push(result),
            None => std::future::pending().await,
        }
    }

    /// Waits for all that was started.
    pub(super) async fn finish(mut self) -> EarlyResults {
        while let Some(result) = self.running.next().await {
            self.done.push(result);
        }
        EarlyResults(self.done)
    }

    /// Gives up what was started for a reply that never became whole.
    pub(super) fn give_up(self, observer: &dyn Observer) {
        for call in self.started {
            observer.see(JobEvent::ToolSkipped {
                item: call.id,
                name: call.name,
                reason: "the reply broke off".to_owned(),
            });
        }
    }
}

/// What the calls of a reply came to that were started before it was whole.
pub(super) struct EarlyResults(Vec<EarlyResult>);

impl EarlyResults {
    /// Takes what `call` came to; none where it was not started as it stands in the journal.
    pub(super) fn take(
        &mut self,
        call: &ToolUse,
    ) -> Option<Result<(String, ToolOutput), EngineError>> {
        let at = self.0.iter().position(|result| result.call == *call)?;
        Some(self.0.swap_remove(at).output)
    }
}
