//! Answers a message and says what changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ropewalk_bus::{LiveChannel, LiveEvent};
use ropewalk_config::Trigger;
use ropewalk_desk::ideas::{self, Words};
use ropewalk_desk::questions::{RefusedAnswer, answer_in_conversation};
use ropewalk_desk::views::idea::answer::DELTA;
use ropewalk_engine::{EngineError, JobEvent, Observer};
use ropewalk_orchestrator::questions::{self, AnswerError, AskOutcome, QuestionRequest};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::idea::{
    Artifact, Author, Idea, IdeaState, Message, Phase, PhaseEntry, Session, Signals,
};
use ropewalk_schemas::payload::{
    ArtifactSaved, CandidateCreated, IdeationCompleted, IdeationMessage, IdeationStarted,
    PhaseChanged, QuestionAnswered,
};
use ropewalk_schemas::question::About;
use ropewalk_schemas::{MessageId, Payload, QuestionId, Subject, UserSlug};
use ropewalk_store::ChangeSet;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::context::{self, MessageContext};
use super::reply::{self, Reply};
use super::{IdeationOptions, decide, earlier, folder, journaled, prompt};
use crate::failure;
use crate::idea_folder::BRIEF;
use crate::withdrawal::Commission;

/// Where an answer comes from when the person just went on talking.
const CHAT: &str = "chat";
/// What is said to a person who ends the conversation right after the brief.
const AS_RECORDED: &str = "The brief stands as I recorded it.";
/// What is said when the model recorded something and found no words.
const SPEECHLESS: &str = "I have noted that. What else should I know?";

/// Answers a message of a person.
pub(super) async fn on_message(
    options: &IdeationOptions,
    event: &IdeationMessage,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut heard = context::load(&context.store, options, event).await?;
    if heard.idea.state == IdeaState::Abandoned {
        return Ok(ChangeSet::new());
    }
    // Who ends the conversation answers nothing.
    if !event.ends
        && let Some(question) = answered_by(context, &heard, &event.user_slug).await?
    {
        answer_open_question(context, question, &heard.message.text, &event.user_slug).await?;
        heard = context::load(&context.store, options, event).await?;
    }
    let mut turn = Turn::new(options, context, &heard);
    if heard.number == 1 {
        turn.begin();
        if event.ends {
            turn.take_as_it_is()?;
            return Ok(turn.finish());
        }
        if let Some(words) = vague_words(&heard)
            && turn.ask_for_the_problem(&words).await?
        {
            return Ok(turn.finish());
        }
    }
    if event.ends && journaled::brief(&context.store, &heard).await? {
        turn.end_with_the_brief()?;
        return Ok(turn.finish());
    }
    let standing = prompt::standing(&options.prompts, &heard, event.ends)?;
    let Some(reply) = ask_the_model(options, context, &heard, &standing).await? else {
        return Ok(ChangeSet::new());
    };
    turn.told = Some(standing);
    turn.take(reply, event.ends).await?;
    Ok(turn.finish())
}

/// Brings an answer that was given elsewhere into the conversation, where it is answered like a message.
pub(super) async fn on_answer(
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let About::Session { session } = answer.about else {
        return Ok(changes);
    };
    if answer.channel == CHAT {
        return Ok(changes);
    }
    let Some(session) = context.store.get::<Session>(&session.to_string()).await? else {
        return Ok(changes);
    };
    let user = UserSlug::parse(&answer.answered_by).unwrap_or_else(|_| session.user.clone());
    let words = Words::of(&answer.answer);
    ideas::hear(&mut changes, context, &session, &user, words);
    let waiting_for = session
        .waiting_for
        .filter(|open| *open != answer.question_id);
    changes.update(
        &session,
        &Session {
            waiting_for,
            ..session.record.clone()
        },
    );
    Ok(changes)
}

/// Returns the question that a message answers: the open one that the session waits for, where it was put to its writer.
async fn answered_by(
    context: &Context,
    heard: &MessageContext,
    user: &UserSlug,
) -> Result<Option<QuestionId>, AgentError> {
    let Some(question) = heard.awaited() else {
        return Ok(None);
    };
    let is_told = context::is_told(&context.store, question.id, user).await?;
    let (asked, said) = (question.asked_at, heard.message.at);
    let is_answer = decide::answers(asked, said, heard.talks_since, is_told);
    Ok(is_answer.then_some(question.id))
}

/// Answers the question that the session waits for by what the person went on to say.
async fn answer_open_question(
    context: &Context,
    question: QuestionId,
    text: &str,
    user: &UserSlug,
) -> Result<(), AgentError> {
    match answer_in_conversation(context, question, text, user, CHAT).await {
        Err(RefusedAnswer::Answer(AnswerError::Read(error))) => Err(error.into()),
        Err(RefusedAnswer::Answer(AnswerError::Commit(error))) => Err(error.into()),
        // Closed by another channel, or by this very message before a crash, or nothing that words decide: they count as a
        // message.
        Ok(_)
        | Err(RefusedAnswer::Forbidden(_) | RefusedAnswer::TooLong(_) | RefusedAnswer::Answer(_)) => {
            Ok(())
        }
    }
}

fn vague_words(heard: &MessageContext) -> Option<String> {
    let stated = heard.readme.as_deref().and_then(decide::stated_problem);
    decide::vague_opening(&heard.message.text, stated.as_deref())
}

/// Returns what the model replies; nothing where people give the idea up meanwhile.
async fn ask_the_model(
    options: &IdeationOptions,
    context: &Context,
    heard: &MessageContext,
    standing: &str,
) -> Result<Option<Reply>, AgentError> {
    let surroundings = prompt::Surroundings::look(options, context, heard).await?;
    let earlier = earlier::turns(&options.engine, heard, &surroundings).await?;
    let job = prompt::job(&options.prompts, heard, &surroundings, (&earlier, standing))?;
    let watcher = Watcher::new(context, heard);
    let cancel = CancellationToken::new();
    let run = options.engine.run(&job, &cancel, &watcher);
    let commission = Commission::Chat(&heard.idea.slug);
    let outcome = commission.while_wanted(&context.store, &cancel, run).await;
    let (text, submitted) = match outcome {
        Ok(outcome) => (outcome.text, outcome.submission),
        Err(
            error @ (EngineError::Submission { .. }
            | EngineError::Stopped { .. }
            | EngineError::OnlyText { .. }),
        ) => {
            let words = journaled::plain_words(&context.store, &job.journal_key).await?;
            (words.ok_or_else(|| failure::of_job(&error))?, None)
        }
        Err(EngineError::Cancelled) => {
            let reason = format!("the idea `{}` was abandoned", heard.idea.slug);
            watcher.publish("ideation.failed", json!({ "reason": reason }));
            return Ok(None);
        }
        Err(error) => {
            watcher.publish("ideation.failed", json!({ "reason": error.to_string() }));
            return Err(failure::of_job(&error));
        }
    };
    let mut reply = match submitted {
        Some(value) => {
            reply::read(&value).map_err(|errors| AgentError::permanent(errors.join("; ")))?
        }
        None => Reply::default(),
    };
    // What was spoken aloud has been seen already; the words in the submission stand in when nothing was.
    if !text.trim().is_empty() {
        reply.text = text;
    } else if reply.text.trim().is_empty() {
        SPEECHLESS.clone_into(&mut reply.text);
    } else {
        watcher.delta(&reply.text);
    }
    Ok(Some(reply))
}

/// Shows the words of the model while they come; those of its first reply that has any, since later ones only repeat
/// them around a submission that was sent back.
struct Watcher<'a> {
    live: LiveChannel,
    heard: &'a MessageContext,
    /// Who listens breaks off the words of an earlier try, which failed or died, when those of another come.
    this_try: String,
    /// How many times words came: who listens knows by it whether some were missed.
    parts: AtomicU64,
    speaking: AtomicBool,
    done: AtomicBool,
}

impl<'a> Watcher<'a> {
    fn new(context: &Context, heard: &'a MessageContext) -> Self {
        Self {
            live: context.bus.live().clone(),
            heard,
            this_try: context.ids.next().to_string(),
            parts: AtomicU64::new(0),
            speaking: AtomicBool::new(false),
            done: AtomicBool::new(false),
        }
    }

    fn delta(&self, text: &str) {
        if !text.is_empty() && !self.done.load(Ordering::Relaxed) {
            self.speaking.store(true, Ordering::Relaxed);
            let part = self.parts.fetch_add(1, Ordering::Relaxed);
            self.publish(DELTA, json!({ "text": text, "part": part }));
        }
    }

    fn publish(&self, event_type: &str, mut data: serde_json::Value) {
        data["session_id"] = json!(self.heard.session.id);
        data["message_id"] = json!(self.heard.message.id);
        data["try"] = json!(&self.this_try);
        self.live.publish(LiveEvent {
            event_type: event_type.to_owned(),
            subject: Subject::idea(&self.heard.session.idea),
            data,
        });
    }
}

impl Observer for Watcher<'_> {
    fn see(&self, event: JobEvent) {
        match event {
            JobEvent::MessageUpdated { text, .. } => self.delta(&text),
            JobEvent::MessageEnded { calls, .. } => {
                let spoke = self.speaking.load(Ordering::Relaxed);
                if spoke && journaled::goes_on(calls.iter().map(String::as_str)) {
                    self.delta("\n\n");
                } else {
                    self.done.store(spoke, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }
}

/// One turn of the conversation: what it changes.
struct Turn<'a> {
    options: &'a IdeationOptions,
    context: &'a Context,
    heard: &'a MessageContext,
    session: Session,
    idea: Idea,
    /// What the model was told of the session; the first message that it says keeps it.
    told: Option<String>,
    changes: ChangeSet,
}

impl<'a> Turn<'a> {
    fn new(options: &'a IdeationOptions, context: &'a Context, heard: &'a MessageContext) -> Self {
        let session = Session {
            // Words of somebody whom it was not put to leave a question open.
            waiting_for: heard.awaited().map(|question| question.id),
            updated_at: context.now(),
            ..heard.session.record.clone()
        };
        let idea = heard.idea.record.clone();
        Self {
            options,
            context,
            heard,
            session,
            idea,
            told: None,
            changes: ChangeSet::new(),
        }
    }

    fn emit(&mut self, payload: Payload) {
        let subject = Subject::idea(&self.session.idea);
        self.changes.emit(self.context.event(subject, payload));
    }

    fn begin(&mut self) {
        self.emit(Payload::IdeationStarted(IdeationStarted {
            session_id: self.session.id,
            idea_slug: self.session.idea.clone(),
            user_slug: self.session.user.clone(),
        }));
    }

    /// Asks what is wanted, as it fits the kind of idea, quoting the person; returns whether the session waits for the answer.
    async fn ask_for_the_problem(&mut self, words: &str) -> Result<bool, AgentError> {
        let kind = json!(self.idea.kind);
        let values = [
            ("kind", kind.as_str().unwrap_or_default().to_owned()),
            ("problem_snippet", words.to_owned()),
        ]
        .into();
        let draft = self
            .options
            .templates
            .render(Trigger::ProblemStatementVague, &values)
            .map_err(AgentError::permanent)?;
        let text = draft.text.clone();
        let about = About::Session {
            session: self.session.id,
        };
        self.ask(QuestionRequest::of(draft, about, Some(&self.session.idea)))
            .await?;
        if self.session.waiting_for.is_some() {
            self.speak(&text);
        }
        Ok(self.session.waiting_for.is_some())
    }

    async fn ask(&mut self, mut asking: QuestionRequest) -> Result<(), AgentError> {
        // The person may simply go on talking, so any text is an answer, unless something would follow from it.
        asking.free_text = !asking.consequential;
        let blocking = asking.kind == ropewalk_schemas::question::QuestionKind::Blocking;
        let deadlines = &self.options.deadlines;
        let text = asking.text.clone();
        match questions::ask(&mut self.changes, self.context, deadlines, asking).await? {
            AskOutcome::Open(id) if blocking => self.session.waiting_for = Some(id),
            AskOutcome::Open(_) => {}
            AskOutcome::Reused(answer) => {
                self.speak(&format!(
                    "{text}\n\nThe earlier answer holds: {}",
                    answer.text
                ));
            }
        }
        Ok(())
    }

    fn speak(&mut self, text: &str) {
        self.changes.insert(&Message {
            id: MessageId(self.context.ids.next()),
            session: self.session.id,
            author: Author::Agent,
            user: None,
            text: text.to_owned(),
            attachments: Vec::new(),
            at: self.context.now(),
            answers: Some(self.heard.message.id),
            told: self.told.take(),
        });
    }

    /// Takes the opening for the whole idea: it is the brief, word for word.
    fn take_as_it_is(&mut self) -> Result<(), AgentError> {
        let reply = decide::as_it_is(&self.idea.title, &self.heard.message.text);
        let before = std::mem::take(&mut self.session.signals);
        let after = decide::merge(&before, &reply);
        self.speak(&reply.text);
        self.save(&before, after, true)?;
        self.enter(Phase::Complete);
        self.complete();
        Ok(())
    }

    /// Ends the conversation with the brief that the last answer recorded.
    fn end_with_the_brief(&mut self) -> Result<(), AgentError> {
        self.speak(AS_RECORDED);
        let known = self.session.signals.clone();
        self.save(&known, known.clone(), true)?;
        self.enter(Phase::Complete);
        self.complete();
        Ok(())
    }

    /// Keeps what the model heard, saves what is sure, moves the phase, and says its words. A person who `ends` the
    /// conversation needs no gate.
    async fn take(&mut self, reply: Reply, ends: bool) -> Result<(), AgentError> {
        self.speak(&reply.text);
        self.idea.kind = self.idea.kind.or(reply.kind);
        let before = std::mem::take(&mut self.session.signals);
        let after = decide::merge(&before, &reply);
        let next = if ends {
            Some(Phase::Complete)
        } else {
            // Whoever still asks has not come to the end.
            let next = decide::next_phase(self.session.phase, self.idea.kind, &after);
            next.filter(|next| *next != Phase::Complete || reply.question.is_none())
        };
        let complete = next == Some(Phase::Complete) || self.session.phase == Phase::Complete;
        self.save(&before, after, complete)?;
        if let Some(next) = next {
            self.enter(next);
        }
        match reply.question {
            Some(question) if next != Some(Phase::Complete) => {
                let about = About::Session {
                    session: self.session.id,
                };
                let asking = question.asking(about, &self.session.idea);
                self.ask(asking).await?;
            }
            _ => {}
        }
        if next == Some(Phase::Complete) {
            self.complete();
        }
        Ok(())
    }

    /// Writes the documents before the commit: whoever sees the event finds the file.
    fn save(
        &mut self,
        before: &Signals,
        mut after: Signals,
        complete: bool,
    ) -> Result<(), AgentError> {
        for (document, rendered) in folder::render(&self.idea.title, &after, complete) {
            let text = folder::reconcile(self.read(&document)?.as_deref(), &rendered);
            let written = self.heard.folder.write(&document, &text);
            written.map_err(|error| failure::of_folder(&error))?;
        }
        let mut saved = Vec::new();
        for artifact in &mut after.artifacts {
            if artifact.confidence < decide::SAVE_FROM {
                continue;
            }
            artifact.path = Some(folder::document_of(&artifact.kind));
            if !before.artifacts.contains(artifact) {
                saved.push(artifact.clone());
            }
        }
        self.session.signals = after;
        for artifact in &saved {
            self.tell_saved(artifact);
        }
        if !saved.is_empty() && self.idea.state == IdeaState::Draft {
            self.idea.state = IdeaState::Candidate;
            self.emit(Payload::CandidateCreated(CandidateCreated {
                session_id: self.session.id,
                idea_slug: self.idea.slug.clone(),
                user_slug: self.idea.user.clone(),
                title: self.idea.title.clone(),
            }));
        }
        Ok(())
    }

    fn read(&self, document: &str) -> Result<Option<String>, AgentError> {
        self.heard
            .folder
            .read(document)
            .map_err(|error| failure::of_folder(&error))
    }

    fn tell_saved(&mut self, artifact: &Artifact) {
        self.emit(Payload::ArtifactSaved(ArtifactSaved {
            session_id: self.session.id,
            idea_slug: self.session.idea.clone(),
            artifact: artifact.kind.clone(),
            path: folder::document_of(&artifact.kind),
            confidence: artifact.confidence,
        }));
    }

    fn enter(&mut self, next: Phase) {
        let from = self.session.phase;
        self.session.phase = next;
        self.session.phases.push(PhaseEntry {
            phase: next,
            at: self.context.now(),
        });
        self.emit(Payload::PhaseChanged(PhaseChanged {
            session_id: self.session.id,
            idea_slug: self.session.idea.clone(),
            from,
            to: next,
            confidence: self.session.signals.confidence,
        }));
    }

    fn complete(&mut self) {
        if self.idea.state == IdeaState::Draft {
            // Complete without a single sure artifact: the brief itself makes it a candidate.
            self.idea.state = IdeaState::Candidate;
        }
        self.idea.state = self
            .idea
            .state
            .to(IdeaState::Captured)
            .unwrap_or(self.idea.state);
        self.session.waiting_for = None;
        for question in self.heard.open_questions() {
            let reason = "the session is complete";
            questions::supersede(&mut self.changes, self.context, question, reason);
        }
        self.emit(Payload::IdeationCompleted(IdeationCompleted {
            session_id: self.session.id,
            idea_slug: self.session.idea.clone(),
            user_slug: self.session.user.clone(),
            brief_path: BRIEF.to_owned(),
            confidence: self.session.signals.confidence,
            ready_for_spec: true,
        }));
    }

    fn finish(mut self) -> ChangeSet {
        self.changes.update(&self.heard.session, &self.session);
        if self.idea != self.heard.idea.record {
            self.changes.update(&self.heard.idea, &self.idea);
        }
        self.changes
    }
}
