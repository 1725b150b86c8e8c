//! Recalls how an earlier job came to its result, so that a later one can go on from there.

use ropewalk_llm::Message;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::conversation::{Conversation, Next};
use super::early::EarlyCalls;
use super::session::{open_intake, tool_choice};
use super::tool_call::CallingReply;
use crate::error::EngineError;
use crate::event::SilentObserver;
use crate::job::Job;
use crate::journal::Journal;

/// A job that came to its result.
pub struct RecalledJob<'a> {
    conversation: Conversation<'a>,
    /// How many messages it began with.
    first: usize,
    /// What was handed in.
    pub result: Value,
}

impl RecalledJob<'_> {
    /// Returns the turns of the job, the call that handed in its result answered with `told`.
    pub fn answered(mut self, told: &str) -> Vec<Message> {
        self.conversation.accept(told);
        self.conversation.messages()[self.first..].to_vec()
    }
}

/// Recalls `job`, where the journal holds all its turns and none of its tools changes anything.
pub(super) async fn recall<'a>(
    engine: &'a Engine,
    job: &'a Job,
) -> Result<Option<RecalledJob<'a>>, EngineError> {
    if !job.tools.only_look() {
        return Ok(None);
    }
    let journal = Journal::new((&engine.store, engine.past.as_ref()), &engine.clock, job);
    let mut conversation = Conversation::new(job, open_intake(job)?);
    let first = conversation.messages().len();
    let cancel = CancellationToken::new();
    let sees_images = engine.models.now().of(job.role).sees_images;
    for turn in 1..=job.limits.turns {
        let Some(known) = journal.replay(turn).await? else {
            return Ok(None);
        };
        // Whoever was asked out there is not asked again, and would say something else by now.
        if known.reply.tool_uses().any(|call| job.tools.goes_out(call)) {
            return Ok(None);
        }
        let reply = CallingReply {
            sees_images,
            at: known.at,
        };
        conversation.expects(&tool_choice(job, turn + 1));
        match conversation
            .hear(
                known.reply,
                EarlyCalls::none(reply, &engine.clock),
                &cancel,
                &SilentObserver,
            )
            .await
        {
            Ok(Next::Ask) => {}
            Ok(Next::End(outcome)) => {
                return Ok(outcome.submission.map(|result| RecalledJob {
                    conversation,
                    first,
                    result,
                }));
            }
            // It ended without a result.
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}
