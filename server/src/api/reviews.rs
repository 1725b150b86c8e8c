//! Reviews: what came of builds, of conversations and of specifications, each with its lessons.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::views::review::{self, ReviewView};
use ropewalk_schemas::Slug;
use ropewalk_schemas::review::Review;
use serde::Deserialize;

use super::{Here, find, wanted};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::{Parameters, Path};

/// Where reviews are listed.
const LIST: &str = "/api/reviews";

/// Which reviews are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Only those of this idea.
    idea: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Lists the reviews, the newest first.
#[utoipa::path(get, path = "/api/reviews", operation_id = "list_reviews", params(Which), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfReview"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<Review>>, Problem> {
    let idea: Option<Slug> = wanted("idea", which.idea.as_deref())?;
    let found = review::list(&shared.services.store, idea.as_ref()).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(found, |review| review.id.to_string()).map(Json)
}

/// Shows what came of a build, a conversation or a specification, with its lessons.
#[utoipa::path(get, path = "/api/reviews/{id}", operation_id = "show_review",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The review.", body = ref("#/components/schemas/ReviewView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<ReviewView>, Problem> {
    let store = &shared.services.store;
    let found = find::<Review>(store, &id, "review", LIST).await?;
    Ok(Json(review::show(store, found.into_inner()).await?))
}
