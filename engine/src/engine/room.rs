//! Makes room in a conversation that grows too long: old results are cut, then the small model sums up what is older.
//!
//! What was done before a call stands in the journal with its reply, and a summary as a call of its own: a replay does
//! the same at the same turn, and asks nobody again.

use std::time::Duration;

use ropewalk_config::Prompt;
use ropewalk_llm::{Block, Message, ModelRequest, Role, ScriptKey, print};
use ropewalk_runtime::{idle, in_hand};
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::model_call::Compaction;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Session;
use super::asking::ask;
use super::conversation::KEPT;
use super::early::EarlyCalls;
use super::secrets::strike_request;
use super::tool_call::CallingReply;
use crate::compaction::CompactionPolicy;
use crate::error::EngineError;
use crate::event::{JobEvent, Observer, SilentObserver};
use crate::job::{ModelEntry, ModelRole};
use crate::journal::{CallDetails, CallKind, Refusal};

/// So many of the newest messages stay where nobody sums up the others.
const KEPT_ALONE: usize = 20;
/// Fewer messages are not worth a summary, unless the provider takes no more.
const WORTH: usize = 4;
/// How often somebody is asked to sum up.
const TRIES: usize = 3;
/// How long that may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a summary may be.
const SUMMARY_TOKENS: u32 = 4_096;
/// How much of one message those who sum up get to read.
const STEP_BYTES: usize = 4_000;
/// How much of the task they get to read.
const TASK_BYTES: usize = 8_000;
/// How much of their window is for what they sum up, in characters a token: code has fewer than prose.
const CHARACTERS_PER_TOKEN: u64 = 2;

impl Session<'_> {
    /// Makes room where the conversation has grown too long, or the provider has `refused` it as too long. Returns what was
    /// done; none where nothing had to be or could be.
    pub(super) async fn make_room(
        &mut self,
        refused: bool,
        cancel: &CancellationToken,
        observer: &dyn Observer,
    ) -> Result<Option<Compaction>, EngineError> {
        let Some(policy) = self.engine.compaction.clone() else {
            return Ok(None);
        };
        let before = self.size();
        // The process may have ended between a summary and the call that it was made for.
        let known = self.journal.summary(self.turn).await?;
        let limit = policy.limit(self.asked().window_tokens);
        if known.is_none() && !refused && before <= limit {
            return Ok(None);
        }
        let cut = self.conversation.trim();
        let is_enough = !refused && cut > 0 && self.size() <= limit / 4 * 3;
        let worth = if refused { 1 } else { WORTH };
        let (how, warning) = if let Some(reply) = known {
            self.conversation.pay(reply.usage);
            self.let_go(KEPT, Some(reply.text()), &policy)?;
            (Compaction::Summarised, None)
        } else if is_enough || self.conversation.older(KEPT).len() < worth {
            if cut == 0 {
                return Ok(None);
            }
            (Compaction::Trimmed, None)
        } else {
            self.sum_up(&policy, cancel).await?
        };
        self.tell(how, before, warning, observer);
        Ok(Some(how))
    }

    /// Does again what was done before the present call, as the journal tells.
    pub(super) async fn make_room_again(
        &mut self,
        how: Compaction,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        // One that made room leaves a journal that is read where none is made, after the configuration was changed.
        let Some(policy) = self.engine.compaction.clone() else {
            return Ok(());
        };
        let before = self.size();
        self.conversation.trim();
        match how {
            Compaction::Trimmed => {}
            Compaction::Summarised => {
                let summary = self.journal.summary(self.turn).await?;
                let summary = summary.inspect(|reply| self.conversation.pay(reply.usage));
                self.let_go(KEPT, summary.map(|reply| reply.text()), &policy)?;
            }
            Compaction::Cut => self.let_go(KEPT_ALONE, None, &policy)?,
        }
        self.tell(how, before, None, observer);
        Ok(())
    }

    fn let_go(
        &mut self,
        keep: usize,
        summary: Option<String>,
        policy: &CompactionPolicy,
    ) -> Result<(), EngineError> {
        self.conversation.let_go(keep, summary, |values| {
            told(policy, Prompt::CompactionMemory, values)
        })
    }

    fn size(&self) -> u64 {
        self.conversation.size(&self.request(&self.asked()))
    }

    fn tell(&self, how: Compaction, before: u64, warning: Option<String>, observer: &dyn Observer) {
        if let Some(warning) = &warning {
            warn!("a conversation goes on without its older messages: {warning}");
        }
        observer.see(JobEvent::Compacted {
            how,
            before,
            after: self.size(),
            warning,
        });
    }

    /// Lets somebody sum up what is older; where nobody can, only the newest messages stay, with a warning.
    async fn sum_up(
        &mut self,
        policy: &CompactionPolicy,
        cancel: &CancellationToken,
    ) -> Result<(Compaction, Option<String>), EngineError> {
        let mut reason = String::new();
        for entry in &self.summarisers() {
            match self.sum_up_by(entry, policy, cancel).await {
                Ok(summary) => {
                    self.let_go(KEPT, Some(summary), policy)?;
                    self.engine.check_budgets(self.job).await?;
                    return Ok((Compaction::Summarised, None));
                }
                Err(error) if cancel.is_cancelled() => return Err(error),
                Err(error @ (EngineError::Journal(_) | EngineError::Read(_))) => return Err(error),
                Err(EngineError::Cancelled) => "it took too long".clone_into(&mut reason),
                Err(error) => reason = error.to_string(),
            }
            warn!("`{}` gave no summary: {reason}", entry.configured_name());
            // It may have been paid all the same.
            self.engine.check_budgets(self.job).await?;
        }
        self.let_go(KEPT_ALONE, None, policy)?;
        let warning = format!("it could not be summed up: {reason}");
        Ok((Compaction::Cut, Some(warning)))
    }

    /// Lists who is asked to sum up, in order: the small models, then the one of the job, and from the beginning again.
    fn summarisers(&self) -> Vec<ModelEntry> {
        let small = self.models.ladder(ModelRole::Small);
        let mut all: Vec<ModelEntry> = small.into_iter().cloned().collect();
        let own = self.asked();
        if all
            .iter()
            .all(|entry| entry.configured_name() != own.configured_name())
        {
            all.push(own);
        }
        all.into_iter().cycle().take(TRIES).collect()
    }

    async fn sum_up_by(
        &mut self,
        entry: &ModelEntry,
        policy: &CompactionPolicy,
        cancel: &CancellationToken,
    ) -> Result<String, EngineError> {
        self.engine.check_outage(entry).await?;
        let request = self.summary_request(entry, policy)?;
        let brake = &self.engine.brake;
        in_hand::aside(brake.pass(cancel)).await;
        let began = self.engine.clock.now();
        let stop = cancel.child_token();
        let item = format!("summary-{}", self.turn);
        let reply = CallingReply {
            sees_images: false,
            at: began,
        };
        let mut early = EarlyCalls::none(reply, &self.engine.clock);
        let mut answer = std::pin::pin!(ask(
            (entry, brake),
            &request,
            &stop,
            (&item, &SilentObserver),
            &mut early
        ));
        let answered = tokio::select! {
            biased;
            answered = in_hand::aside(&mut answer) => answered,
            () = self.engine.clock.sleep(PATIENCE) => {
                stop.cancel();
                answer.await
            }
        };
        let call = (self.turn, CallKind::Summary);
        let reply = match answered {
            Ok(reply) if reply.text().trim().is_empty() => {
                let reason = "it said nothing";
                let refusal = Refusal::broken(reason);
                self.journal
                    .spend(call, entry, &reply.usage, refusal)
                    .await?;
                return Err(EngineError::Job(reason.to_owned()));
            }
            Ok(reply) => reply,
            Err(broken) => {
                // Whether the provider is away, the call that this is made for finds out.
                if let Some(usage) = broken.usage {
                    let refusal = Refusal::from(&broken.error);
                    self.journal.spend(call, entry, &usage, refusal).await?;
                }
                idle::end_here().await;
                return Err(broken.error);
            }
        };
        let asked = CallDetails {
            entry,
            took: self.engine.clock.now() - began,
            compaction: None,
            print: print::print(&request),
        };
        let known = self
            .journal
            .record_summary(self.turn, reply, &asked)
            .await?;
        self.conversation.pay(known.reply.usage);
        Ok(known.reply.text())
    }

    fn summary_request(
        &self,
        entry: &ModelEntry,
        policy: &CompactionPolicy,
    ) -> Result<ModelRequest, EngineError> {
        let task = self.job.messages.first().map(text_of).unwrap_or_default();
        let room = policy.limit(entry.window_tokens) * CHARACTERS_PER_TOKEN;
        let values = json!({
            "task": clip::ends(&task, TASK_BYTES, Weight::Even),
            "summary": self.conversation.summary(),
            "steps": steps(self.conversation.older(KEPT), usize::try_from(room).unwrap_or(usize::MAX)),
        });
        let system = told(policy, Prompt::Compaction, &json!({}))?;
        let words = told(policy, Prompt::CompactionTurn, &values)?;
        let mut request = ModelRequest {
            max_output_tokens: SUMMARY_TOKENS,
            script: Some(ScriptKey {
                agent: "compaction".to_owned(),
                turn: self.turn,
                ..self.job.script.clone()
            }),
            ..ModelRequest::new(&entry.name, &system, vec![Message::user(words)])
        };
        strike_request(&mut request);
        Ok(request)
    }
}

fn told(policy: &CompactionPolicy, prompt: Prompt, values: &Value) -> Result<String, EngineError> {
    let told = policy.prompts.render(prompt, values);
    told.map_err(|error| EngineError::Job(error.to_string()))
}

fn text_of(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Tells messages to those who sum them up: the newest of them whole, as far as there is `room`.
fn steps(messages: &[Message], room: usize) -> Vec<Value> {
    let blocks = messages
        .iter()
        .flat_map(|message| message.blocks.iter().map(|block| (message.role, block)));
    let mut told: Vec<(String, String)> = blocks.filter_map(step).collect();
    let mut left = room;
    let fits = told.iter().rev().take_while(|(_, text)| {
        let fits = text.len() <= left;
        left = left.saturating_sub(text.len());
        fits
    });
    let fits = fits.count();
    let unsaid = told.len() - fits;
    told.drain(..unsaid);
    if unsaid > 0 {
        let gap = format!("{unsaid} steps, for which there is no room here");
        told.insert(0, ("Before this came".to_owned(), gap));
    }
    let steps = told.into_iter();
    steps
        .map(|(who, text)| json!({ "who": who, "text": text }))
        .collect()
}

fn step((role, block): (Role, &Block)) -> Option<(String, String)> {
    let (who, text) = match block {
        Block::Text(text) if role == Role::Assistant => ("The agent said".to_owned(), text.clone()),
        Block::Text(text) => ("The agent was told".to_owned(), text.clone()),
        Block::ToolUse(call) => (
            format!("The agent called `{}`", call.name),
            call.input.to_string(),
        ),
        Block::ToolResult { content, .. } => ("The result was".to_owned(), content.clone()),
        Block::Opaque { .. } => return None,
    };
    Some((
        who,
        clip::ends(&text, STEP_BYTES, Weight::Even).into_owned(),
    ))
}
