//! What was learned: items with where they were used, and reviews.

use axum::Json;
use axum::extract::{Path, State};
use ropewalk_desk::views::knowledge::{self, KnowledgeView};
use ropewalk_desk::views::review::{self, ReviewView};
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::review::Review;
use serde::Deserialize;

use super::{Here, find};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::Parameters;

/// Where items are listed.
const LIST: &str = "/api/knowledge";
/// Where reviews are announced.
const REVIEWS: &str = "/api/events?type=review.completed";

/// Which items are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Those that are out of use too.
    all: bool,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Lists what was learned, the newest first.
#[utoipa::path(get, path = "/api/knowledge", operation_id = "list_knowledge", params(Which), responses(
    (status = 200, description = "A part of it.", body = ref("#/components/schemas/PageOfKnowledgeItem"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<KnowledgeItem>>, Problem> {
    let items = knowledge::list(&shared.services.store, None, which.all).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(items, |item| item.id.to_string()).map(Json)
}

/// Shows an item with where it was used.
#[utoipa::path(get, path = "/api/knowledge/{id}", operation_id = "show_knowledge",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The item.", body = ref("#/components/schemas/KnowledgeView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<KnowledgeView>, Problem> {
    let store = &shared.services.store;
    let item = find::<KnowledgeItem>(store, &id, "knowledge item", LIST).await?;
    Ok(Json(knowledge::show(store, item.into_inner()).await?))
}

/// Shows what came of a build, a conversation or a specification, with its lessons.
#[utoipa::path(get, path = "/api/reviews/{id}", operation_id = "show_review",
    params(("id" = String, Path, description = "Its id, as `review.completed` names it.")), responses(
    (status = 200, description = "The review.", body = ref("#/components/schemas/ReviewView"))
))]
pub(crate) async fn review(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<ReviewView>, Problem> {
    let store = &shared.services.store;
    let found = find::<Review>(store, &id, "review", REVIEWS).await?;
    Ok(Json(review::show(store, found.into_inner()).await?))
}
