//! What was learned: found by words, with where it was used and what came of that.

mod effect;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::views::knowledge::{self, KnowledgeView};
use ropewalk_schemas::knowledge::KnowledgeItem;
use serde::Deserialize;

use super::frame::{Frame, page};
use super::pager::{PageQuery, Pager};
use super::{markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Parameters, Path};
use effect::Effect;

/// What is looked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SearchQuery {
    words: String,
    page: Option<u32>,
}

#[derive(Template)]
#[template(path = "knowledge.html")]
struct List {
    frame: Frame,
    words: String,
    /// What was learned, with a picture of what came of it.
    items: Vec<(Option<Effect>, KnowledgeItem)>,
    pager: Pager,
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
    let at = PageQuery::at(wanted.page);
    let found = knowledge::page(store, &wanted.words, at.number()).await?;
    let mut uses = knowledge::uses(store, &found.items).await?;
    let shown = found.items.into_iter().map(|item| {
        let uses = uses.remove(&item.id).unwrap_or_default();
        (Effect::of(&uses), item)
    });
    let items = shown.collect();
    page(&List {
        pager: pager(&at, &wanted.words, found.pages),
        words: wanted.words,
        frame,
        items,
    })
}

/// Turns the pages of what fits some words, or of what changed last.
fn pager(at: &PageQuery, words: &str, pages: u32) -> Pager {
    if words.trim().is_empty() {
        return at.pager("/knowledge", pages);
    }
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair("words", words.trim()).finish();
    let order = ["what fits better", "what fits less"];
    at.pager_of(&format!("/knowledge?{query}"), pages, order)
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
