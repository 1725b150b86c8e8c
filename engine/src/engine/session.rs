//! Runs one job to a result, and on from there when that result does not hold.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use ropewalk_llm::{ModelError, ModelRequest, Reply, ToolChoice, print};
use ropewalk_runtime::in_hand;
use ropewalk_schemas::model_call::Compaction;
use ropewalk_store::ReadError;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::Engine;
use super::asking::{CallFailure, ask};
use super::conversation::{Conversation, Next};
use super::early::EarlyCalls;
use super::images;
use super::secrets::strike_request;
use super::tool_call::CallingReply;
use crate::compaction::reply_tokens;
use crate::error::EngineError;
use crate::event::{self, JobEvent, Observer};
use crate::job::{Job, ModelEntry, ModelRole, Models, Outcome};
use crate::journal::{CallDetails, Journal, JournalEntry, WentOn};
use crate::steering::{NoSteering, Steering};
use crate::submission::{Intake, Submission};
use crate::traced;

/// A job on its way, whose results its owner judges.
pub struct Session<'a> {
    pub(super) engine: &'a Engine,
    pub(super) job: &'a Job,
    /// The models of the present turn.
    pub(super) models: Arc<Models>,
    pub(super) journal: Journal<'a>,
    pub(super) conversation: Conversation<'a>,
    /// Who hears what people say meanwhile.
    steering: Arc<dyn Steering>,
    /// Which of the models of its role is asked; one that took over is kept.
    pub(super) rung: usize,
    /// How often the model was asked.
    pub(super) turn: u32,
    /// When the newest reply came.
    heard_at: Option<DateTime<Utc>>,
    /// How often a result was sent back.
    tries: u32,
    /// The turn after which the present try began.
    since: u32,
}

impl<'a> Session<'a> {
    /// Opens a job; nothing is asked yet.
    pub(super) fn open(engine: &'a Engine, job: &'a Job) -> Result<Self, EngineError> {
        let intake = open_intake(job)?;
        Ok(Self {
            engine,
            job,
            models: engine.models.now(),
            journal: Journal::new((&engine.store, engine.past.as_ref()), &engine.clock, job),
            conversation: Conversation::new(job, intake),
            steering: Arc::new(NoSteering),
            rung: 0,
            turn: 0,
            heard_at: None,
            tries: 0,
            since: 0,
        })
    }

    /// Lets people speak into it from now on.
    #[must_use]
    pub fn steered_by(mut self, steering: Arc<dyn Steering>) -> Self {
        self.steering = steering;
        self
    }

    /// Returns the turn that was heard last, from 1: with the key of the job it names a place in the journal.
    pub const fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns when the newest reply came, the same for whoever hears it from the journal; none before the first.
    pub const fn heard_at(&self) -> Option<DateTime<Utc>> {
        self.heard_at
    }

    /// Returns what its older messages were summed up as the last time; none where they all stand.
    pub fn summary(&self) -> Option<&str> {
        self.conversation.summary()
    }

    /// Says whether the conversation went on after the newest reply when the job ran before.
    pub async fn went_on(&self) -> Result<WentOn, ReadError> {
        self.journal.went_on(self.turn).await
    }

    /// Goes on until there is a result. A job whose key was run before gets the same replies again, as far as they go.
    pub fn run<'b>(
        &'b mut self,
        cancel: &'b CancellationToken,
        observer: &'b dyn Observer,
    ) -> BoxFuture<'b, Result<Outcome, EngineError>> {
        let (job, clock) = (self.job, &self.engine.clock);
        traced::job(job, clock, self.turns(cancel, observer)).boxed()
    }

    /// Answers the call that handed in a result which does not hold. What follows is another try, with turns and tokens
    /// of its own.
    pub fn send_back(&mut self, told: &str) {
        self.conversation.reopen(told);
        self.tries += 1;
        self.since = self.turn;
    }

    /// As [`Self::send_back`], as one of the repairs of the result, of which what the session itself sent back are others; false,
    /// and nothing is sent back, where they are used up.
    pub fn repair(&mut self, told: &str) -> bool {
        let repairs = self.conversation.repairs();
        let submission = self.job.submission.as_ref();
        if submission.is_none_or(|submission| repairs >= submission.repairs) {
            return false;
        }
        self.send_back(told);
        self.conversation.count_repairs(repairs + 1);
        true
    }

    async fn turns(
        &mut self,
        cancel: &CancellationToken,
        observer: &dyn Observer,
    ) -> Result<Outcome, EngineError> {
        while self.turn - self.since < self.job.limits.turns {
            if cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            self.conversation.check_tokens()?;
            self.turn += 1;
            self.take_models();
            self.job.tools.begin_turn();
            let known = self.journal.replay(self.turn).await?;
            observer.see(JobEvent::TurnStarted {
                turn: self.turn,
                replayed: known.is_some(),
            });
            let (known, strayed) = match known {
                Some(known) => {
                    let (reply, strayed) = self.know(known, observer).await?;
                    (Some(reply), strayed)
                }
                None => (None, None),
            };
            let mut stop = None;
            let next = self.one(known, &mut stop, cancel, observer).await;
            observer.see(JobEvent::TurnEnded {
                turn: self.turn,
                stop,
                error: next.as_ref().err().map(ToString::to_string),
                strayed,
            });
            match next? {
                Next::Ask => {}
                Next::End(outcome) => return Ok(outcome),
            }
        }
        Err(EngineError::TurnLimit {
            turns: self.job.limits.turns,
        })
    }

    /// Comes to where the conversation stood when this was answered; also says what had been asked otherwise.
    async fn know(
        &mut self,
        known: JournalEntry,
        observer: &dyn Observer,
    ) -> Result<(Reply, Option<String>), EngineError> {
        self.goes_on_with(known.provider.as_deref(), &known.reply.model);
        if let Some(how) = known.compaction {
            self.make_room_again(how, observer).await?;
        }
        let asked = known.asked.as_ref();
        let strayed =
            asked.and_then(|asked| print::difference(asked, &self.request(&self.asked())));
        match &strayed {
            // Work that is taken up again is told how things stand by now: what others have landed, what is left of a budget.
            Some(what) if what.is_of_what_was_told() => {
                debug!(
                    "turn {} was told otherwise before: {}",
                    self.turn,
                    what.named()
                );
            }
            Some(what) => warn!("turn {} was asked otherwise before: {what}", self.turn),
            None => {}
        }
        self.heard_at = Some(known.at);
        Ok((known.reply, strayed.map(|what| what.to_string())))
    }

    /// One turn: the answer that is known, or a new one, and what follows from it.
    async fn one(
        &mut self,
        known: Option<Reply>,
        stop: &mut Option<String>,
        cancel: &CancellationToken,
        observer: &dyn Observer,
    ) -> Result<Next, EngineError> {
        let item = event::message(self.turn);
        observer.see(JobEvent::MessageStarted { item: item.clone() });
        let (reply, early) = if let Some(reply) = known {
            let text = reply.text();
            observer.see(JobEvent::MessageUpdated { item, text });
            (reply, EarlyCalls::none(self.calling(), &self.engine.clock))
        } else {
            self.ask(&item, cancel, observer).await?
        };
        in_hand::advanced();
        *stop = Some(event::stop_name(&reply.stop));
        let cost = self.asked().micro_usd(&reply.model, &reply.usage);
        let in_try = self.turn - self.since;
        self.conversation
            .expects(&tool_choice(self.job, in_try + 1));
        observer.see(event::message_ended(self.turn, &reply, cost));
        self.conversation.hear(reply, early, cancel, observer).await
    }

    /// Says what is known of the reply that was heard last.
    fn calling(&self) -> CallingReply {
        CallingReply {
            sees_images: self.asked().sees_images,
            at: self.heard_at.unwrap_or_else(|| self.engine.clock.now()),
        }
    }

    /// Asks the model; its reply is in the journal before anything acts on it.
    async fn ask<'b>(
        &mut self,
        item: &str,
        cancel: &CancellationToken,
        observer: &'b dyn Observer,
    ) -> Result<(Reply, EarlyCalls<'b>), EngineError>
    where
        'a: 'b,
    {
        self.engine.check_budgets(self.job).await?;
        self.reach(observer).await?;
        for text in self.steering.heard().await {
            self.conversation.say(&text);
            observer.see(JobEvent::PersonSaid { text });
        }
        let mut room = self.make_room(false, cancel, observer).await?;
        let mut refused = false;
        loop {
            let failed = match self.ask_once(room, item, cancel, observer).await {
                Ok(answered) => return Ok(answered),
                Err(failed) => failed,
            };
            // Once in a turn: a conversation that is too long after a summary stays too long.
            let may_help = matches!(room, None | Some(Compaction::Trimmed));
            if is_overflow(&failed.error) && !refused && may_help {
                refused = true;
                let made = self.make_room(true, cancel, observer).await?;
                if made.is_some() {
                    room = made;
                    continue;
                }
            }
            self.fall_back(failed, observer).await?;
            self.reach(observer).await?;
            // Whoever took over may have a smaller window.
            if may_help {
                let made = self.make_room(false, cancel, observer).await?;
                room = made.or(room);
            }
        }
    }

    async fn ask_once<'b>(
        &mut self,
        compaction: Option<Compaction>,
        item: &str,
        cancel: &CancellationToken,
        observer: &'b dyn Observer,
    ) -> Result<(Reply, EarlyCalls<'b>), CallFailure>
    where
        'a: 'b,
    {
        let entry = &self.asked();
        let request = self.request(entry);
        in_hand::aside(self.engine.brake.pass(cancel)).await;
        let began = self.engine.clock.now();
        let brake = &self.engine.brake;
        let before = (
            CallingReply {
                sees_images: entry.sees_images,
                at: began,
            },
            self.conversation.repetition(),
        );
        let mut early = EarlyCalls::of(self.job, before, &self.engine.clock, cancel, observer);
        let answer = ask(
            (entry, brake),
            &request,
            cancel,
            (item, observer),
            &mut early,
        );
        match in_hand::aside(answer).await {
            Ok(reply) => {
                let took = self.engine.clock.now() - began;
                let asked = CallDetails {
                    entry,
                    took,
                    compaction,
                    print: print::print(&request),
                };
                let known = self.journal.record(self.turn, reply, &asked).await?;
                self.heard_at = Some(known.at);
                early.reply.at = known.at;
                Ok((known.reply, early))
            }
            Err(broken) => {
                early.give_up(observer);
                let usage = broken.usage;
                let error = self.engine.broke(&self.journal, self.turn, entry, broken);
                let error = error.await;
                Err(CallFailure { error, usage })
            }
        }
    }

    /// Returns what `entry` would be asked now.
    pub(super) fn request(&self, entry: &ModelEntry) -> ModelRequest {
        let place = (self.tries, self.turn - self.since);
        ModelRequest {
            effort: self.models.efforts.get(&self.job.role).copied(),
            traceparent: self.job.traceparent(&self.journal.key(self.turn)),
            ..request(self.job, entry, &self.conversation, place)
        }
    }
}

fn is_overflow(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Model(ModelError::ContextOverflow { .. })
    )
}

pub(super) fn open_intake(job: &Job) -> Result<Option<Arc<Intake<'_>>>, EngineError> {
    let Some(submission) = &job.submission else {
        return Ok(None);
    };
    if job.tools.contains(&submission.name) {
        return Err(EngineError::Job(format!(
            "the submission and a tool are both called `{}`; rename one",
            submission.name
        )));
    }
    let intake = Intake::open(submission).map_err(EngineError::Job)?;
    Ok(Some(Arc::new(intake)))
}

fn request(
    job: &Job,
    entry: &ModelEntry,
    conversation: &Conversation<'_>,
    (tries, turn): (u32, u32),
) -> ModelRequest {
    let mut tools = job.tools.specs();
    tools.extend(job.submission.as_ref().map(Submission::spec));
    let mut script = job.script.clone();
    script.attempt += tries;
    script.turn = turn;
    let mut request = ModelRequest {
        tools,
        tool_choice: tool_choice(job, turn),
        max_output_tokens: job.limits.output_tokens,
        script: Some(script),
        ..ModelRequest::new(&entry.name, &job.system, conversation.messages().to_vec())
    };
    images::fit(&mut request.messages, entry.sees_images);
    strike_request(&mut request);
    let asked = conversation.size(&request);
    request.max_output_tokens = reply_tokens(job.limits.output_tokens, asked, entry.window_tokens);
    request
}

/// A model is made to submit where it has nothing else to do: without tools, and once it has looked around for so long that
/// the turns left are those of a submission and its repairs. A chat without tools speaks first: a model that is made to call
/// says nothing.
pub(super) fn tool_choice(job: &Job, turn: u32) -> ToolChoice {
    let Some(submission) = &job.submission else {
        return ToolChoice::Auto;
    };
    let is_late = turn + submission.repairs >= job.limits.turns;
    let is_forced = if job.tools.is_empty() {
        job.role != ModelRole::Chat
    } else {
        is_late && job.tools.only_look()
    };
    if is_forced {
        ToolChoice::Tool(submission.name.clone())
    } else {
        ToolChoice::Auto
    }
}
