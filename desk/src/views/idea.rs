//! Ideas as people see them.

pub mod abandonment;
pub mod answer;
pub mod board;
mod brief;
pub mod progress;
pub mod relations;
mod standing;

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use ropewalk_coordination::waits::blocking_questions;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, IdeaState, Message, Phase, Session};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::{QuestionId, SessionId, Slug, Subject};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::build;
use super::{AT_ONCE, Span, bears, records};
use crate::ideas::standing;
use crate::views::dead_letter::{self, DeadLetterRow};
use abandonment::AbandonmentView;
use relations::IdeaRelation;
pub use standing::Whereabouts;

/// An idea in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IdeaRow {
    /// Its name.
    pub slug: Slug,
    /// What it is about.
    pub title: String,
    /// Whose it is.
    pub user: String,
    /// How far its conversation has come, or that it is landed or given up.
    pub state: IdeaState,
    /// Where it stands with what was written and built of it.
    pub standing: Whereabouts,
    /// Where its conversation stands.
    pub phase: Option<Phase>,
    /// How sure the conversation is.
    pub confidence: f64,
    /// How many artifacts were captured.
    pub artifacts: usize,
    /// Whether an open question holds work on it up.
    pub waits_for_answer: bool,
    /// When it began.
    pub created_at: DateTime<Utc>,
}

/// An idea with what was learned and said.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IdeaView {
    /// The idea.
    #[serde(flatten)]
    pub idea: Idea,
    /// Where it stands with what was written and built of it.
    pub standing: Whereabouts,
    /// Where its documents lie.
    pub folder: PathBuf,
    /// What its brief says, once one is written.
    pub brief: Option<String>,
    /// The state of its conversation.
    pub conversation: Option<Session>,
    /// What was said.
    pub messages: Vec<Message>,
    /// What was written of it.
    pub specifications: Vec<Specification>,
    /// What was built of it.
    pub builds: Vec<Build>,
    /// The open questions that hold work on it up.
    pub waits_for: Vec<QuestionId>,
    /// How it stands to other ideas.
    pub relations: Vec<IdeaRelation>,
    /// Who gave it up and why, while the timeline still has it; nothing where nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<AbandonmentView>,
    /// What happened to it and could not be handled, the newest first.
    pub unhandled: Vec<DeadLetterRow>,
}

/// Lists messages without what the model was told before it answered: that is for the model alone.
async fn said(store: &Store, of_session: Query) -> Result<Vec<Message>, ReadError> {
    let messages = records(store.list::<Message>(of_session).await?).into_iter();
    let bare = |message| Message {
        told: None,
        ..message
    };
    Ok(messages.map(bare).collect())
}

/// Which ideas are wanted; all of them where nothing is said.
#[derive(Debug, Clone, Default)]
pub struct IdeaFilter {
    /// Only those that have come so far.
    pub state: Option<IdeaState>,
    /// Only those that began then.
    pub begun: Span,
    /// Only those whose name or title bears these words.
    pub words: Option<String>,
}

/// Lists ideas, the oldest first.
pub async fn list(store: &Store, filter: &IdeaFilter) -> Result<Vec<IdeaRow>, ReadError> {
    let mut rows = looked_up(store, named(store, filter).await?).await?;
    // How far it has come is told by its builds too, so that no column holds it.
    rows.retain(|row| filter.state.is_none_or(|state| row.state == state));
    Ok(rows)
}

/// Finds ideas whose name or title bears `words`: at most `most`, the newest first.
pub async fn find(store: &Store, words: &str, most: usize) -> Result<Vec<IdeaRow>, ReadError> {
    let filter = IdeaFilter {
        words: Some(words.to_owned()),
        ..IdeaFilter::default()
    };
    let found = named(store, &filter).await?.into_iter().rev();
    looked_up(store, found.take(most).collect()).await
}

/// Lists the ideas that began when `filter` says and bear its words, whatever their state, the oldest first.
async fn named(store: &Store, filter: &IdeaFilter) -> Result<Vec<Idea>, ReadError> {
    let oldest = filter.begun.within("created_at", Query::new());
    let mut ideas: Vec<Idea> = records(store.list(oldest.order_by("created_at")).await?);
    if let Some(words) = &filter.words {
        ideas.retain(|idea| bears(words, &[idea.slug.as_str(), &idea.title]));
    }
    Ok(ideas)
}

/// Tells where each of `ideas` stands, in the word that lists show.
pub async fn whereabouts(
    store: &Store,
    ideas: &[Idea],
) -> Result<BTreeMap<Slug, Whereabouts>, ReadError> {
    let builds = build::of_ideas(store, ideas).await?;
    let written = newest_written(store, ideas).await?;
    let tell = |idea: &Idea| {
        let built = builds.get(&idea.slug).map_or(&[][..], Vec::as_slice);
        let state = standing(idea.clone(), built).state;
        let stands = Whereabouts::of(state, built.last(), written.get(&idea.slug));
        (idea.slug.clone(), stands)
    };
    Ok(ideas.iter().map(tell).collect())
}

/// Adds to each of `ideas` where it and its conversation stand.
async fn looked_up(store: &Store, ideas: Vec<Idea>) -> Result<Vec<IdeaRow>, ReadError> {
    let builds = build::of_ideas(store, &ideas).await?;
    let written = newest_written(store, &ideas).await?;
    let open = blocking_questions(store).await?;
    rows(store, ideas, (&builds, &written), &open).await
}

/// Returns the newest specification of each of `ideas` that has one.
async fn newest_written(
    store: &Store,
    ideas: &[Idea],
) -> Result<BTreeMap<Slug, Specification>, ReadError> {
    let mut newest = BTreeMap::new();
    for part in ideas.chunks(AT_ONCE) {
        let slugs = part.iter().map(|idea| &idea.slug);
        let of_part = Query::new().one_of("idea", slugs).order_by("created_at");
        let written = records(store.list::<Specification>(of_part).await?).into_iter();
        newest.extend(written.map(|spec| (spec.idea.clone(), spec)));
    }
    Ok(newest)
}

/// Adds to each of `ideas`, of which were `builds` and the newest specifications are `written`, where it and its
/// conversation stand; some of `open` hold it up.
pub(super) async fn rows(
    store: &Store,
    ideas: Vec<Idea>,
    (builds, written): (&BTreeMap<Slug, Vec<Build>>, &BTreeMap<Slug, Specification>),
    open: &[Question],
) -> Result<Vec<IdeaRow>, ReadError> {
    let sessions = conversations(store, &ideas).await?;
    let rows = ideas.into_iter().map(|idea| {
        let waits = waits_for(&idea.slug, open).next().is_some();
        let session = sessions.get(&idea.session);
        let built = builds.get(&idea.slug).map_or(&[][..], Vec::as_slice);
        let idea = standing(idea, built);
        let stands = Whereabouts::of(idea.state, built.last(), written.get(&idea.slug));
        row(idea, stands, session, waits)
    });
    Ok(rows.collect())
}

/// Reads the conversations of `ideas`.
async fn conversations(
    store: &Store,
    ideas: &[Idea],
) -> Result<BTreeMap<SessionId, Session>, ReadError> {
    let mut sessions: BTreeMap<SessionId, Session> = BTreeMap::new();
    for part in ideas.chunks(AT_ONCE) {
        let keys = part.iter().map(|idea| idea.session);
        let found = store.list(Query::new().one_of("key", keys)).await?;
        sessions.extend(records(found).into_iter().map(|one: Session| (one.id, one)));
    }
    Ok(sessions)
}

/// Loads an idea whose documents lie in `folder` of it; `None` when there is no such idea.
pub async fn show(
    store: &Store,
    slug: &Slug,
    folder: impl FnOnce(&Idea) -> PathBuf,
) -> Result<Option<IdeaView>, ReadError> {
    let Some(idea) = store.get::<Idea>(slug.as_str()).await? else {
        return Ok(None);
    };
    let idea = idea.record;
    let of_idea = || {
        Query::new()
            .equal("idea", idea.slug.as_str())
            .order_by("created_at")
    };
    let of_session = Query::new()
        .equal("session", idea.session.to_string())
        .order_by("at");
    let session = store.get::<Session>(&idea.session.to_string()).await?;
    let open = blocking_questions(store).await?;
    let waits_for = waits_for(&idea.slug, &open).map(|question| question.id);
    let waits_for = waits_for.collect();
    let builds = records(store.list::<Build>(of_idea()).await?);
    let abandoned = match idea.state {
        IdeaState::Abandoned => abandonment::of(store, &idea.slug).await?,
        _ => None,
    };
    let specifications = records(store.list::<Specification>(of_idea()).await?);
    let idea = standing(idea, &builds);
    let folder = folder(&idea);
    Ok(Some(IdeaView {
        abandoned,
        standing: Whereabouts::of(idea.state, builds.last(), specifications.last()),
        unhandled: dead_letter::about(store, Subject::idea(&idea.slug)).await?,
        brief: brief::read(&folder),
        folder,
        conversation: session.map(|session| session.record),
        messages: said(store, of_session).await?,
        specifications,
        waits_for,
        relations: relations::of(store, &builds).await?,
        idea,
        builds,
    }))
}

fn row(
    idea: Idea,
    standing: Whereabouts,
    session: Option<&Session>,
    waits_for_answer: bool,
) -> IdeaRow {
    let signals = session.map(|session| &session.signals);
    IdeaRow {
        phase: session.map(|session| session.phase),
        confidence: signals.map_or(0.0, |signals| signals.confidence),
        artifacts: signals.map_or(0, |signals| signals.artifacts.len()),
        waits_for_answer,
        slug: idea.slug,
        title: idea.title,
        user: idea.user.to_string(),
        state: idea.state,
        standing,
        created_at: idea.created_at,
    }
}

/// Returns the open questions about an idea, whatever part of the work on it they hold up.
fn waits_for<'a>(
    idea: &'a Slug,
    open: &'a [Question],
) -> impl Iterator<Item = &'a Question> + use<'a> {
    open.iter()
        .filter(move |question| question.idea.as_ref() == Some(idea))
}
