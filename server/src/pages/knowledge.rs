//! What was learned: found by words, with where it was used and what came of that.

mod effect;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use ropewalk_desk::views::knowledge::{self, KnowledgeView};
use ropewalk_schemas::knowledge::KnowledgeItem;
use serde::Deserialize;

use super::frame::{Frame, page};
use super::{markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Parameters;
use effect::Effect;

/// How many items are shown.
const MOST: u32 = 100;

/// What is looked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SearchQuery {
    words: String,
}

#[derive(Template)]
#[template(path = "knowledge.html")]
struct List {
    frame: Frame,
    words: String,
    /// What was learned, with a picture of what came of it.
    items: Vec<(Option<Effect>, KnowledgeItem)>,
}

#[derive(Template)]
#[template(path = "lesson.html")]
struct One {
    frame: Frame,
    view: KnowledgeView,
    effect: Option<Effect>,
    html: String,
}

/// Shows what fits some words, or what changed last.
pub(super) async fn list(
    State(shared): State<ServerState>,
    frame: Frame,
    Parameters(wanted): Parameters<SearchQuery>,
) -> Result<Response, Problem> {
    let store = &shared.services.store;
    let items = if wanted.words.trim().is_empty() {
        knowledge::newest(store, MOST).await?
    } else {
        knowledge::search(store, &wanted.words, MOST).await?
    };
    let mut uses = knowledge::uses(store, &items).await?;
    let shown = items.into_iter().map(|item| {
        let uses = uses.remove(&item.id).unwrap_or_default();
        (Effect::of(&uses), item)
    });
    page(&List {
        words: wanted.words,
        frame,
        items: shown.collect(),
    })
}

/// Shows an item.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let list = "the page of what was learned shows them";
    let item = shown::find::<KnowledgeItem>(&shared, &id, "knowledge item", list).await?;
    let view = knowledge::show(&shared.services.store, item).await?;
    let html = markdown::html(&view.item.content);
    page(&One {
        effect: Effect::of(&view.uses),
        frame,
        view,
        html,
    })
}
