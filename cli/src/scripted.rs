//! Plays the person of a rehearsal: chats, asks for a specification, approves it, answers questions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ropewalk_desk::ideas::{self, ChatError, Opening};
use ropewalk_desk::people;
use ropewalk_desk::specifications::{self, ApproveError, RequestError};
use ropewalk_orchestrator::questions::{self, AnswerError};
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::idea::{Author, Message, Phase};
use ropewalk_schemas::payload::{PhaseChanged, QuestionAsked, ReviewCompleted, SpecGenerated};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::review::ReviewKind;
use ropewalk_schemas::specification::Complexity;
use ropewalk_schemas::{
    ComponentName, Event, EventPattern, InvalidId, Payload, Priority, Slug, UserSlug,
};
use ropewalk_store::{ChangeSet, Query};
use serde::Deserialize;

/// What the person does, as `person.yaml` holds it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The ideas, the first one begins.
    pub ideas: Vec<ScriptedIdea>,
    /// The choice or the words that answer a question, by its trigger.
    #[serde(default)]
    answers: BTreeMap<String, String>,
}

/// An idea of the person.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedIdea {
    /// Its name.
    pub slug: Slug,
    title: String,
    /// The idea whose review sets this one off; none for the one that begins.
    #[serde(default)]
    after: Option<Slug>,
    /// What is said when a phase begins.
    says: BTreeMap<Phase, String>,
}

/// Says why the script of a person cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PersonScriptError {
    /// It is not the YAML of a script.
    #[error("the script of the person is not valid: {0}")]
    Malformed(String),
    /// An idea says nothing when its session begins.
    #[error("idea `{0}` has no text for the phase `exploring`")]
    Silent(Slug),
    /// A name of the program itself is not valid.
    #[error(transparent)]
    Name(#[from] InvalidId),
}

/// The scripted person, a durable subscriber like any agent, so that a crash loses nothing of them.
///
/// A person acts as people do, by verbs that commit for themselves; so each act looks first whether a delivery
/// that came before has done it already.
pub struct Person {
    role: ComponentName,
    user: UserSlug,
    script: Script,
}

impl Script {
    /// Reads a script.
    pub fn parse(yaml: &str) -> Result<Self, PersonScriptError> {
        let script: Self = serde_saphyr::from_str(yaml)
            .map_err(|error| PersonScriptError::Malformed(error.to_string()))?;
        match script
            .ideas
            .iter()
            .find(|idea| !idea.says.contains_key(&Phase::Exploring))
        {
            Some(idea) => Err(PersonScriptError::Silent(idea.slug.clone())),
            None => Ok(script),
        }
    }
}

impl Person {
    /// Returns the person named `user` who plays `script`.
    pub fn new(user: UserSlug, script: Script) -> Result<Self, PersonScriptError> {
        Ok(Self {
            role: ComponentName::parse("person")?,
            user,
            script,
        })
    }

    fn idea(&self, slug: &Slug) -> Option<&ScriptedIdea> {
        self.script.ideas.iter().find(|idea| idea.slug == *slug)
    }

    /// Begins `idea`, unless it has begun.
    async fn begin(&self, idea: &ScriptedIdea, context: &Context) -> Result<(), AgentError> {
        let opening = Opening {
            user: self.user.clone(),
            title: Some(idea.title.clone()),
            text: idea
                .says
                .get(&Phase::Exploring)
                .cloned()
                .unwrap_or_default(),
            slug: Some(idea.slug.clone()),
            kind: None,
            whole: false,
        };
        match ideas::start(context, opening).await {
            Ok(_) | Err(ChatError::Taken(_)) => Ok(()),
            Err(error) => Err(AgentError::transient(Words::of(&error))),
        }
    }

    /// Says what belongs to the phase that began; a redelivered event finds it said.
    async fn on_phase(&self, change: &PhaseChanged, context: &Context) -> Result<(), AgentError> {
        let text = self
            .idea(&change.idea_slug)
            .and_then(|idea| idea.says.get(&change.to));
        let Some(text) = text else { return Ok(()) };
        let session = Query::new().equal("session", change.session_id.to_string());
        let messages = context.store.list::<Message>(session).await?;
        if messages
            .iter()
            .any(|message| message.author == Author::Person && message.text == *text)
        {
            return Ok(());
        }
        ideas::say(context, change.session_id, &self.user, text)
            .await
            .map(|_| ())
            .map_err(|error| AgentError::transient(Words::of(&error)))
    }

    async fn on_ideation(&self, idea: &Slug, context: &Context) -> Result<(), AgentError> {
        match specifications::request(context, idea, &self.user, Complexity::Simple).await {
            Ok(_)
            | Err(
                RequestError::OnItsWay { .. }
                | RequestError::Built { .. }
                | RequestError::Landed { .. }
                | RequestError::Abandoned(_),
            ) => Ok(()),
            Err(error) => Err(AgentError::transient(Words::of(&error))),
        }
    }

    async fn on_specification(
        &self,
        generated: &SpecGenerated,
        context: &Context,
    ) -> Result<(), AgentError> {
        let approved = specifications::approve(
            context,
            generated.spec_id,
            &generated.hash,
            &people::Person::alone(self.user.clone()),
            Priority::DEFAULT,
        )
        .await;
        match approved {
            Ok(_) | Err(ApproveError::Already { .. } | ApproveError::Abandoned(_)) => Ok(()),
            Err(error) => Err(AgentError::transient(Words::of(&error))),
        }
    }

    async fn on_question(
        &self,
        asked: &QuestionAsked,
        context: &Context,
    ) -> Result<(), AgentError> {
        let question = context
            .store
            .get::<Question>(&asked.question_id.to_string())
            .await?;
        let answer = question.and_then(|question| self.script.answers.get(&question.trigger));
        let Some(answer) = answer else { return Ok(()) };
        let by = self.user.as_str();
        match questions::answer(context, asked.question_id, answer, by, "rehearsal").await {
            Ok(_) | Err(AnswerError::Closed { .. }) => Ok(()),
            Err(error) => Err(AgentError::transient(Words::of(&error))),
        }
    }

    async fn on_review(
        &self,
        review: &ReviewCompleted,
        context: &Context,
    ) -> Result<(), AgentError> {
        let next = self
            .script
            .ideas
            .iter()
            .find(|idea| idea.after.as_ref() == Some(&review.idea_slug));
        match next {
            Some(idea) if review.kind == ReviewKind::Build => self.begin(idea, context).await,
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Agent for Person {
    fn profile(&self) -> Profile {
        let patterns = [
            "ideation.phase_changed",
            "ideation.completed",
            "spec.generated",
            "question.asked",
            "review.completed",
        ];
        Profile {
            role: self.role.clone(),
            patterns: patterns.map(EventPattern::of).to_vec(),
            in_flight: 4,
            schedules: Vec::new(),
        }
    }

    /// Begins the first idea, also when a crash came before it had begun.
    async fn recover(&self, context: &Context) -> Result<(), AgentError> {
        match self.script.ideas.iter().find(|idea| idea.after.is_none()) {
            Some(first) => self.begin(first, context).await,
            None => Ok(()),
        }
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        // A person begins a chain of hops anew, but stays in the chain of the idea.
        let context = &context.for_claim(event.correlation_id, event.priority);
        match &event.payload {
            Payload::PhaseChanged(change) => self.on_phase(change, context).await?,
            Payload::IdeationCompleted(done) => self.on_ideation(&done.idea_slug, context).await?,
            Payload::SpecGenerated(generated) => self.on_specification(generated, context).await?,
            Payload::QuestionAsked(asked) => self.on_question(asked, context).await?,
            Payload::ReviewCompleted(review) => self.on_review(review, context).await?,
            _ => {}
        }
        Ok(ChangeSet::new())
    }
}
