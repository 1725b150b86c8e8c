//! Reviews: what came of builds, of conversations and of specifications, each with its lessons.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::views::review::{self, ReviewView};
use ropewalk_schemas::review::Review;

use super::{Here, find};
use crate::page::{Page, PartOfIdea};
use crate::problem::Problem;
use crate::take::{Parameters, Path};

/// Where reviews are listed.
const LIST: &str = "/api/reviews";

/// Lists the reviews, the newest first.
#[utoipa::path(get, path = "/api/reviews", operation_id = "list_reviews", params(PartOfIdea), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfReview"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<PartOfIdea>,
) -> Result<Json<Page<Review>>, Problem> {
    let found = review::list(&shared.services.store, which.idea()?.as_ref()).await?;
    which.of(found, |review| review.id.to_string())
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
