//! Lines that people say something about, and what they say: all of it together asks for another revision.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::comments::{self, Comment};
use ropewalk_desk::views::lines::LinesView;
use ropewalk_schemas::{CommitId, ContentHash};
use schemars::JsonSchema;
use serde::Deserialize;

use super::specifications::SpecificationReceipt;
use super::{Here, builds, specifications, unreadable};
use crate::problem::Problem;
use crate::take::{Asker, Json as JsonBody, Path};

/// What is said about lines, all of it together.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommentsRequest {
    /// What the lines were shown of: `of` of the lines.
    of: String,
    /// What is said: 1 to 100 comments.
    comments: Vec<Comment>,
}

/// Shows the documents of the newest revision of a specification, line by line.
#[utoipa::path(get, path = "/api/specifications/{id}/lines", operation_id = "show_specification_lines",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The lines.", body = ref("#/components/schemas/LinesView"))
))]
pub(crate) async fn of_specification(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<LinesView>, Problem> {
    let found = specifications::found(&shared, &id).await?;
    let lines = comments::lines_of_specification(&shared.services.store, &found).await?;
    Ok(Json(lines))
}

/// Asks for another revision by comments on lines of the newest one.
#[utoipa::path(post, path = "/api/specifications/{id}/comments", operation_id = "comment_on_specification",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/CommentsRequest"), content_type = "application/json"), responses(
    (status = 202, description = "It is asked for; `spec.generated` follows.", body = ref("#/components/schemas/SpecificationReceipt"))
))]
pub(crate) async fn on_specification(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(said): JsonBody<CommentsRequest>,
) -> Result<(StatusCode, Json<SpecificationReceipt>), Problem> {
    let spec = specifications::found(&shared, &id).await?.id;
    let hash = ContentHash::parse(&said.of).map_err(unreadable("of"))?;
    let context = shared.context();
    comments::on_specification(&context, spec, &hash, &person, &said.comments).await?;
    Ok((StatusCode::ACCEPTED, Json(SpecificationReceipt { spec })))
}

/// Shows what a build changed, line by line.
#[utoipa::path(get, path = "/api/builds/{id}/lines", operation_id = "show_build_lines",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The lines.", body = ref("#/components/schemas/LinesView"))
))]
pub(crate) async fn of_build(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<LinesView>, Problem> {
    let found = builds::found(&shared, &id).await?;
    let files = shared.changed(&found).await?;
    Ok(Json(comments::lines_of_build(&found, files)))
}

/// Asks for another revision by comments on lines of what a finished build changed; the amended build does them.
#[utoipa::path(post, path = "/api/builds/{id}/comments", operation_id = "comment_on_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/CommentsRequest"), content_type = "application/json"), responses(
    (status = 202, description = "It is asked for; `spec.generated` follows.", body = ref("#/components/schemas/SpecificationReceipt"))
))]
pub(crate) async fn on_build(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(said): JsonBody<CommentsRequest>,
) -> Result<(StatusCode, Json<SpecificationReceipt>), Problem> {
    let found = builds::found(&shared, &id).await?;
    let head = CommitId::parse(&said.of).map_err(unreadable("of"))?;
    let files = shared.changed(&found).await?;
    let context = shared.context();
    let said = &said.comments;
    let spec = comments::on_build(&context, &found, &head, &files, &person, said).await?;
    Ok((StatusCode::ACCEPTED, Json(SpecificationReceipt { spec })))
}
