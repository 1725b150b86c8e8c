//! The board: every idea where it stands on its way, a page at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ropewalk_coordination::waits::blocking_questions;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{Slug, Subject};
use ropewalk_store::{Query, ReadError, Record, Store};

use super::{IdeaFilter, IdeaRow};
use crate::ideas::standing;
use crate::views::build::{self, BuildRow};
use crate::views::dead_letter;
use crate::views::{PAGE, pages, records};

/// How many of the newest dead letters the cards tell of.
const LETTERS: u32 = 500;

/// A page of the board.
#[derive(Debug)]
pub struct BoardView {
    /// The ideas of this page, the newest first.
    pub cards: Vec<BoardCard>,
    /// How many ideas there are on all pages.
    pub ideas: u64,
    /// How many pages there are.
    pub pages: u32,
}

/// An idea with the newest of what was written and built of it.
#[derive(Debug)]
pub struct BoardCard {
    /// The idea.
    pub idea: IdeaRow,
    /// Its newest specification.
    pub specification: Option<Specification>,
    /// Its newest build.
    pub build: Option<BuildRow>,
    /// The open questions that hold work on it up.
    pub waits_for: Vec<Question>,
    /// Whether something that happened to it could not be handled.
    pub is_unhandled: bool,
}

/// Loads a page of the board; pages are numbered from 0, and `providers` are those who build. The first page has the
/// ideas, beside the newest, that are worked on or wait for somebody.
pub async fn show(
    store: &Store,
    number: u32,
    providers: &[String],
) -> Result<BoardView, ReadError> {
    let newest = Query::new().order_by("created_at").descending();
    let busy = async {
        match number {
            0 => busy(store).await,
            _ => Ok(BTreeSet::new()),
        }
    };
    let (ideas, mut busy, all) = futures::try_join!(
        store.list(newest.page(number, PAGE)),
        Box::pin(busy),
        store.count::<Idea>(Query::new()),
    )?;
    let mut ideas: Vec<Idea> = records(ideas);
    for idea in &ideas {
        busy.remove(&idea.slug);
    }
    if !busy.is_empty() {
        let rest = Query::new().one_of("key", &busy);
        ideas.extend(records(store.list(rest).await?));
        ideas.sort_by_key(|idea: &Idea| Reverse(idea.created_at));
    }
    Ok(BoardView {
        cards: Box::pin(cards(store, ideas, providers)).await?,
        ideas: all,
        pages: pages(all, PAGE),
    })
}

/// Loads a page of those ideas alone that `filter` wants, the newest first; pages are numbered from 0.
pub async fn filtered(
    store: &Store,
    filter: &IdeaFilter,
    number: u32,
    providers: &[String],
) -> Result<BoardView, ReadError> {
    let mut found = super::named(store, filter).await?;
    if let Some(state) = filter.state {
        // How far it has come is told by its builds too.
        let built = build::of_ideas(store, &found).await?;
        let of = |idea: &Idea| built.get(&idea.slug).map_or(&[][..], Vec::as_slice);
        found.retain(|idea| standing(idea.clone(), of(idea)).state == state);
    }
    let (page, all) = (PAGE as usize, found.len() as u64);
    let newest = found.into_iter().rev();
    let ideas = newest.skip(number as usize * page).take(page).collect();
    Ok(BoardView {
        cards: Box::pin(cards(store, ideas, providers)).await?,
        ideas: all,
        pages: pages(all, PAGE),
    })
}

/// Returns the ideas that somebody works on or is asked about; of each sort as many as a page has.
async fn busy(store: &Store) -> Result<BTreeSet<Slug>, ReadError> {
    let asked = [QuestionState::Pending.as_str()];
    let written = [SpecState::Draft, SpecState::Generated].map(SpecState::as_str);
    let built = BuildState::ALL.iter().filter(|state| !state.has_ended());
    let built: Vec<&str> = built.map(|state| state.as_str()).collect();
    let (asked, written, built) = futures::try_join!(
        newest::<Question>(store, &asked, "asked_at"),
        newest::<Specification>(store, &written, "created_at"),
        newest::<Build>(store, &built, "created_at"),
    )?;
    let asked = asked.into_iter().filter_map(|question| question.idea);
    let written = written.into_iter().map(|specification| specification.idea);
    let built = built.into_iter().map(|build| build.idea);
    Ok(asked.chain(written).chain(built).collect())
}

/// Reads the newest records in one of some states, as many as a page has.
async fn newest<R: Record>(store: &Store, states: &[&str], by: &str) -> Result<Vec<R>, ReadError> {
    let of_states = Query::new().one_of("state", states.iter().copied());
    let newest = of_states.order_by(by).descending().limit(PAGE);
    Ok(records(store.list(newest).await?))
}

/// Adds to each idea where it stands.
async fn cards(
    store: &Store,
    ideas: Vec<Idea>,
    providers: &[String],
) -> Result<Vec<BoardCard>, ReadError> {
    let (mut specifications, built, open) = futures::try_join!(
        super::newest_written(store, &ideas),
        build::of_ideas(store, &ideas),
        blocking_questions(store),
    )?;
    let last = built.values().filter_map(|builds| builds.last().cloned());
    let (rows, ideas, letters) = futures::try_join!(
        build::rows(store, last.collect(), providers),
        super::rows(store, ideas, (&built, &specifications), &open),
        dead_letter::list(store, LETTERS),
    )?;
    let mut builds: BTreeMap<Slug, BuildRow> = rows
        .into_iter()
        .map(|row| (row.build.idea.clone(), row))
        .collect();
    let unhandled: BTreeSet<&str> = letters
        .iter()
        .map(|letter| letter.subject.as_str())
        .collect();
    let cards = ideas.into_iter().map(|idea| BoardCard {
        is_unhandled: unhandled.contains(Subject::idea(&idea.slug).as_str()),
        specification: specifications.remove(&idea.slug),
        waits_for: super::waits_for(&idea.slug, &open).cloned().collect(),
        build: builds.remove(&idea.slug),
        idea,
    });
    Ok(cards.collect())
}
