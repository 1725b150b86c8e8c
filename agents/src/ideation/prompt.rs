//! Builds the job of one message: what the model is told and what it has to submit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ropewalk_config::prompts::{Prompt, Prompts};
use ropewalk_engine::llm::{Block, Message as ModelMessage, Role, ScriptKey};
use ropewalk_engine::submission::Check;
use ropewalk_engine::{AgentMode, Job, Limits, ModelRole, Submission, Toolbox, UsageScope};
use ropewalk_knowledge::{Wish, wishes};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::document::without_mark;
use ropewalk_schemas::idea::{Author, Message, Phase};
use ropewalk_schemas::{MessageId, clip};
use serde_json::{Value, json};

use super::context::MessageContext;
use super::folder::is_ours;
use super::reply::{self, Reply};
use super::{IdeationOptions, decide};
use crate::repository::{self, FoundConventions, Look, OtherIdea};
use ropewalk_engine::schema_of;

/// The tool that ends the turn of the model.
pub(super) const SUBMIT: &str = "reply";
/// How often a wrong submission is sent back; after that the plain words count.
const REPAIRS: u32 = 2;
/// How often the model is asked for one answer. It may look around first, but a person waits.
pub(super) const TURNS: u32 = 20;
/// How much of a document of the idea folder the model gets to read.
const DOCUMENT_CHARACTERS: usize = 8_000;

/// The turns that earlier answers were made in, by the message that each answers.
pub(super) type EarlierTurns = BTreeMap<MessageId, Vec<ModelMessage>>;

/// What lies around an idea: the repository at its head with what people wrote for it, the other ideas about it, and what
/// people want of all work.
pub(super) struct Surroundings {
    look: Option<Look>,
    conventions: Option<FoundConventions>,
    ideas: Vec<OtherIdea>,
    wishes: Vec<Wish>,
}

impl Surroundings {
    /// Looks at them as they are now.
    pub(super) async fn look(
        options: &IdeationOptions,
        context: &Context,
        heard: &MessageContext,
    ) -> Result<Self, AgentError> {
        let store = &context.store;
        let wishes = wishes(store, |_| true).await?;
        let Some(repository) = &options.repository else {
            return Ok(Self {
                look: None,
                conventions: None,
                ideas: Vec::new(),
                wishes,
            });
        };
        let look = repository.look(AgentMode::Explore).await?;
        Ok(Self {
            conventions: repository.conventions(&look.commit).await?,
            look: Some(look),
            ideas: repository::others(store, &options.places, &heard.session.idea).await?,
            wishes,
        })
    }
}

/// Builds the job.
pub(super) fn job(
    prompts: &Prompts,
    heard: &MessageContext,
    around: &Surroundings,
    (earlier, standing): (&EarlierTurns, &str),
) -> Result<Job, AgentError> {
    let known = heard.session.signals.clone();
    let check: Check = Arc::new(move |value| {
        let errors = decide::withdrawn_in_vain(&known, &reply::read(value)?);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    });
    Ok(Job {
        system: system(prompts, heard, around)?,
        messages: conversation(heard, earlier, standing),
        submission: Some(submission(check)),
        ..exchange(heard, around, heard.message.id)
    })
}

/// Names the answer to a message in the journal.
pub(super) fn journal_key(message: MessageId) -> String {
    format!("message/{message}")
}

/// Builds what the answer to a message is asked and taken by, all but what the model is told.
pub(super) fn exchange(heard: &MessageContext, around: &Surroundings, message: MessageId) -> Job {
    Job {
        journal_key: journal_key(message),
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
        system: String::new(),
        messages: Vec::new(),
        tools: around
            .look
            .as_ref()
            .map_or_else(Toolbox::default, |look| look.tools.clone()),
        submission: Some(submission(Arc::new(|value| reply::read(value).map(|_| ())))),
        limits: Limits {
            turns: TURNS,
            ..Limits::default()
        },
    }
}

fn submission(check: Check) -> Submission {
    Submission {
        name: SUBMIT.to_owned(),
        description: "Records what the conversation has shown so far.".to_owned(),
        schema: schema_of::<Reply>(),
        draft: None,
        check,
        repairs: REPAIRS,
    }
}

/// What stays as it is while the session goes on: a provider keeps what every request begins with.
fn system(
    prompts: &Prompts,
    heard: &MessageContext,
    around: &Surroundings,
) -> Result<String, AgentError> {
    let values = json!({
        "kind": heard.idea.kind,
        "repository": around.look.as_ref().map(Look::told),
        "ideas": around.ideas,
        "conventions": around.conventions.as_ref().map(|found| &found.text),
        "wishes": around.wishes,
        "submit_tool": SUBMIT,
    });
    prompts
        .render(Prompt::Ideation, &values)
        .map_err(AgentError::permanent)
}

/// Tells what stands by now, which is something else at each message.
pub(super) fn standing(
    prompts: &Prompts,
    heard: &MessageContext,
    ends: bool,
) -> Result<String, AgentError> {
    let signals = &heard.session.signals;
    // What was rendered of the session says nothing beside it.
    let readme = heard.readme.as_deref();
    let idea = readme.filter(|readme| !is_ours(readme)).map(|readme| {
        json!({
            "readme": bounded(readme),
            "target_users": heard.target_users.as_deref().map(bounded),
        })
    });
    let answers: Vec<Value> = heard
        .answers()
        .filter(|(question, answer)| !heard.is_in_conversation(question, answer))
        .map(|(question, answer)| json!({ "question": question, "answer": answer }))
        .collect();
    let unanswered: Vec<&str> = heard
        .open_questions()
        .map(|question| question.text.as_str())
        .collect();
    let phase = heard.session.phase;
    // Before the brief is there, only what stands already says anything.
    let is_told = phase == Phase::Complete || !heard.progress.is_empty();
    let values = json!({
        "slug": heard.session.idea,
        "phase": phase,
        "kind": heard.idea.kind,
        "ending": ends,
        "confidence": signals.confidence,
        "artifacts": signals.artifacts,
        "decisions": signals.decisions,
        "risks": signals.risks,
        "answers": answers,
        "unanswered": unanswered,
        "idea": idea,
        "progress": is_told.then_some(&heard.progress),
        "phone": heard.has_phone,
    });
    let told = prompts
        .render(Prompt::IdeationTurn, &values)
        .map_err(AgentError::permanent)?;
    Ok(format!("<session>\n{told}\n</session>"))
}

/// Returns the last messages with the speakers taking turns, the person first, as providers want it. An answer stands there
/// with what was looked at for it, as far as that is known. What stands by now goes with the last words, and what stood before
/// stays where it was told: a request begins with all that the one before it held.
fn conversation(
    heard: &MessageContext,
    earlier: &EarlierTurns,
    standing: &str,
) -> Vec<ModelMessage> {
    let mut spoken: Vec<ModelMessage> = Vec::new();
    let mut recalled = BTreeSet::new();
    for message in &heard.recent {
        if let Some(told) = &message.told {
            tell(&mut spoken, told);
        }
        // The second message that answers the same one was no part of what the model said.
        let asked = message.answers.filter(|asked| recalled.insert(*asked));
        let turns = asked
            .and_then(|asked| earlier.get(&asked))
            .filter(|_| !spoken.is_empty());
        match turns {
            Some(turns) => turns.iter().for_each(|turn| add(&mut spoken, turn.clone())),
            None => add(&mut spoken, said(message)),
        }
    }
    tell(&mut spoken, standing);
    spoken
}

/// Puts what stands before the last words of the person, if they are what was said last.
fn tell(spoken: &mut [ModelMessage], standing: &str) {
    if let Some(last) = spoken.last_mut().filter(|last| last.role == Role::User) {
        let words = last.blocks.len().saturating_sub(1);
        last.blocks.insert(words, Block::Text(standing.to_owned()));
    }
}

fn said(message: &Message) -> ModelMessage {
    let role = match message.author {
        Author::Person => Role::User,
        Author::Agent => Role::Assistant,
    };
    ModelMessage {
        role,
        blocks: vec![Block::Text(message.text.clone())],
    }
}

fn add(spoken: &mut Vec<ModelMessage>, turn: ModelMessage) {
    match spoken.last_mut() {
        Some(last) if last.role == turn.role => last.blocks.extend(turn.blocks),
        None if turn.role == Role::Assistant => {}
        _ => spoken.push(turn),
    }
}

fn bounded(text: &str) -> String {
    clip::letters(without_mark(text), DOCUMENT_CHARACTERS).into_owned()
}
