//! What was learned: found by words, with where it was used and what came of that.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use ropewalk_desk::views::knowledge::{self, KnowledgeView};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem};
use ropewalk_store::{Query, Versioned};
use serde::Deserialize;

use super::frame::{Frame, page};
use super::{markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Parameters;

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
    items: Vec<KnowledgeItem>,
}

#[derive(Template)]
#[template(path = "lesson.html")]
struct One {
    frame: Frame,
    view: KnowledgeView,
    html: String,
}

/// Says what a use came to.
fn effect(usage: &Injection) -> &'static str {
    match (usage.held_out, usage.helped, usage.build) {
        (true, ..) => "left out to measure",
        (_, Some(true), _) => "kept it from a failure",
        (_, Some(false), _) => "its mistake was made all the same",
        (_, None, Some(_)) => "shows nothing",
        (_, None, None) => "not settled",
    }
}

/// Shows what fits some words, or what changed last.
pub(super) async fn list(
    State(shared): State<ServerState>,
    frame: Frame,
    Parameters(wanted): Parameters<SearchQuery>,
) -> Result<Response, Problem> {
    let store = &shared.services.store;
    let items = if wanted.words.trim().is_empty() {
        let all = Query::new().order_by("updated_at");
        let rows = store.list::<KnowledgeItem>(all).await?;
        let newest = rows.into_iter().rev().take(MOST as usize);
        newest.map(Versioned::into_inner).collect()
    } else {
        knowledge::search(store, &wanted.words, MOST).await?
    };
    page(&List {
        words: wanted.words,
        frame,
        items,
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
    page(&One { frame, view, html })
}
