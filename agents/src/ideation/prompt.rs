//! Builds the job of one message: what the model is told and what it has to submit.

use std::sync::Arc;

use ropewalk_config::prompts::{Prompt, Prompts};
use ropewalk_engine::llm::{Block, Message as Spoken, Role, ScriptKey};
use ropewalk_engine::{Job, Limits, ModelRole, Submission, Toolbox, UsageScope};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::document::without_mark;
use ropewalk_schemas::idea::Author;
use serde_json::{Value, json};

use super::IdeationOptions;
use super::context::Heard;
use super::reply::{self, Reply};
use crate::repository::{self, Look, Other};
use ropewalk_engine::schema_of;

/// The tool that ends the turn of the model.
pub(super) const SUBMIT: &str = "reply";
/// How often a wrong submission is sent back; after that the plain words count.
const REPAIRS: u32 = 2;
/// How often the model is asked for one answer. It may look around first, but a person waits.
pub(super) const TURNS: u32 = 20;
/// How much of a document of the idea folder the model gets to read.
const DOCUMENT_CHARACTERS: usize = 8_000;

/// Returns the journal key of a message.
pub(super) fn journal_key(heard: &Heard) -> String {
    format!("message/{}", heard.message.id)
}

/// What lies around an idea: the repository at its head, and the other ideas about it.
pub(super) struct Surroundings {
    look: Option<Look>,
    ideas: Vec<Other>,
}

impl Surroundings {
    /// Looks at them as they are now.
    pub(super) async fn look(
        options: &IdeationOptions,
        context: &Context,
        heard: &Heard,
    ) -> Result<Self, AgentError> {
        let Some(repository) = &options.repository else {
            return Ok(Self {
                look: None,
                ideas: Vec::new(),
            });
        };
        let idea = &heard.session.idea;
        Ok(Self {
            look: Some(repository.look().await?),
            ideas: repository::others(&context.store, &options.places, idea).await?,
        })
    }
}

/// Builds the job.
pub(super) fn job(
    prompts: &Prompts,
    heard: &Heard,
    around: &Surroundings,
    ends: bool,
) -> Result<Job, AgentError> {
    Ok(Job {
        journal_key: journal_key(heard),
        role: ModelRole::Chat,
        script: ScriptKey {
            agent: "ideation".to_owned(),
            idea: heard.session.idea.to_string(),
            task: format!("message-{}", heard.number),
            attempt: 1,
            turn: 1,
        },
        scope: UsageScope {
            idea: Some(heard.session.idea.clone()),
            chain: Some(heard.session.correlation_id),
            ..UsageScope::default()
        },
        system: system(prompts, heard, around)?,
        messages: conversation(heard, &standing(prompts, heard, ends)?),
        tools: around
            .look
            .as_ref()
            .map_or_else(Toolbox::default, |look| look.tools.clone()),
        submission: Some(Submission {
            name: SUBMIT.to_owned(),
            description:
                "Says your words to the person and records what the conversation has shown so far."
                    .to_owned(),
            schema: schema_of::<Reply>(),
            check: Arc::new(|value| reply::read(value).map(|_| ())),
            repairs: REPAIRS,
        }),
        limits: Limits {
            turns: TURNS,
            ..Limits::default()
        },
    })
}

/// What stays as it is while the session goes on: a provider keeps what every request begins with.
fn system(prompts: &Prompts, heard: &Heard, around: &Surroundings) -> Result<String, AgentError> {
    let values = json!({
        "kind": heard.idea.kind,
        "slug": heard.session.idea,
        "repository": around.look.as_ref().map(Look::told),
        "ideas": around.ideas,
        "submit_tool": SUBMIT,
    });
    prompts
        .render(Prompt::Ideation, &values)
        .map_err(AgentError::permanent)
}

/// What stands by now, which is something else at each message.
fn standing(prompts: &Prompts, heard: &Heard, ends: bool) -> Result<String, AgentError> {
    let signals = &heard.session.signals;
    let idea = heard.readme.as_deref().map(|readme| {
        json!({
            "readme": bounded(readme),
            "target_users": heard.target_users.as_deref().map(bounded),
        })
    });
    let answers: Vec<Value> = heard
        .answers()
        .map(|(question, answer)| json!({ "question": question, "answer": answer }))
        .collect();
    let values = json!({
        "phase": heard.session.phase,
        "kind": heard.idea.kind,
        "ending": ends,
        "confidence": signals.confidence,
        "artifacts": signals.artifacts,
        "decisions": signals.decisions,
        "risks": signals.risks,
        "answers": answers,
        "idea": idea,
    });
    let told = prompts
        .render(Prompt::IdeationTurn, &values)
        .map_err(AgentError::permanent)?;
    Ok(format!("<session>\n{told}\n</session>"))
}

/// Returns the last messages with the speakers taking turns, the person first, as providers want it; what stands by now
/// goes with the last words.
fn conversation(heard: &Heard, standing: &str) -> Vec<Spoken> {
    let mut spoken: Vec<Spoken> = Vec::new();
    for message in &heard.recent {
        let role = match message.author {
            Author::Person => Role::User,
            Author::Agent => Role::Assistant,
        };
        let words = Block::Text(message.text.clone());
        match spoken.last_mut() {
            Some(last) if last.role == role => last.blocks.push(words),
            None if role == Role::Assistant => {}
            _ => spoken.push(Spoken {
                role,
                blocks: vec![words],
            }),
        }
    }
    if let Some(last) = spoken.last_mut() {
        let words = last.blocks.len().saturating_sub(1);
        last.blocks.insert(words, Block::Text(standing.to_owned()));
    }
    spoken
}

fn bounded(text: &str) -> String {
    without_mark(text)
        .chars()
        .take(DOCUMENT_CHARACTERS)
        .collect()
}
