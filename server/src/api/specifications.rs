//! Specifications: asked for, read, compared, approved, revised and put away.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::specifications;
use ropewalk_desk::views::specification::{
    self, RevisionDifference, SpecificationRow, SpecificationView,
};
use ropewalk_schemas::specification::{Complexity, Price, Specification};
use ropewalk_schemas::{ContentHash, Priority, Slug, SpecId};
use ropewalk_store::Versioned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Here, find, unreadable, wanted};
use crate::page::{Page, PartOfIdea};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Json as JsonBody, Parameters, Path};

/// Where specifications are listed.
const LIST: &str = "/api/specifications";

/// The specification that is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpecificationRequest {
    /// The name of the idea.
    idea: String,
    /// How large the plan may become; `medium` where nothing is said.
    complexity: Option<Complexity>,
}

/// A specification that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpecificationReceipt {
    pub(super) spec: SpecId,
}

/// A yes to one revision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalRequest {
    /// The hash of the revision that was read.
    hash: String,
    /// How urgent its build is: 1 (highest) to 10, 5 where nothing is said.
    priority: Option<u8>,
}

/// What was approved.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovedRevision {
    spec: SpecId,
    revision: u32,
    hash: ContentHash,
    price: Option<Price>,
}

/// What a person wants to be different, or why it is put away.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Feedback {
    /// The words.
    text: String,
    /// The hash of the revision that was read; where it is no longer the newest, nothing is changed.
    hash: Option<String>,
}

impl Feedback {
    fn shown(&self) -> Result<Option<ContentHash>, Problem> {
        wanted("hash", self.hash.as_deref())
    }
}

/// Which revisions are compared.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RevisionPair {
    /// The earlier; the one before the later where nothing is said.
    from: Option<u32>,
    /// The later; the newest where nothing is said.
    to: Option<u32>,
}

/// Lists the specifications, the oldest first.
#[utoipa::path(get, path = "/api/specifications", operation_id = "list_specifications", params(PartOfIdea), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfSpecificationRow"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<PartOfIdea>,
) -> Result<Json<Page<SpecificationRow>>, Problem> {
    let rows = specification::list(&shared.services.store, which.idea()?.as_ref()).await?;
    which.of(rows, |row| row.specification.id.to_string())
}

/// Asks for the specification of an idea.
#[utoipa::path(post, path = "/api/specifications/generate", operation_id = "generate_specification",
    request_body(content = ref("#/components/schemas/SpecificationRequest"), content_type = "application/json"), responses(
    (status = 202, description = "It is asked for; `spec.generated` follows.", body = ref("#/components/schemas/SpecificationReceipt"))
))]
pub(crate) async fn generate(
    State(shared): Here,
    Asker(person): Asker,
    JsonBody(wanted): JsonBody<SpecificationRequest>,
) -> Result<(StatusCode, Json<SpecificationReceipt>), Problem> {
    let idea = Slug::parse(&wanted.idea).map_err(unreadable("idea"))?;
    let (context, by) = (shared.context(), &person.name);
    let complexity = wanted.complexity.unwrap_or(Complexity::Medium);
    let spec = specifications::request(&context, &idea, by, complexity).await?;
    Ok((StatusCode::ACCEPTED, Json(SpecificationReceipt { spec })))
}

/// Shows a specification with its newest revision.
#[utoipa::path(get, path = "/api/specifications/{id}", operation_id = "show_specification",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The specification.", body = ref("#/components/schemas/SpecificationView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<SpecificationView>, Problem> {
    let found = found(&shared, &id).await?.into_inner();
    let view = specification::show(&shared.services.store, found).await?;
    Ok(Json(view))
}

/// Compares two revisions of a specification.
#[utoipa::path(get, path = "/api/specifications/{id}/difference", operation_id = "compare_revisions",
    params(("id" = String, Path, description = "Its id."), RevisionPair), responses(
    (status = 200, description = "What differs.", body = ref("#/components/schemas/RevisionDifference"))
))]
pub(crate) async fn compare(
    State(shared): Here,
    Path(id): Path<String>,
    Parameters(between): Parameters<RevisionPair>,
) -> Result<Json<RevisionDifference>, Problem> {
    let found = found(&shared, &id).await?;
    let (store, RevisionPair { from, to }) = (&shared.services.store, between);
    let difference = specification::compare(store, &found, from, to).await?;
    Ok(Json(difference))
}

/// Approves exactly the revision of a hash; its build begins.
#[utoipa::path(post, path = "/api/specifications/{id}/approve", operation_id = "approve_specification",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/ApprovalRequest"), content_type = "application/json"), responses(
    (status = 200, description = "It is approved; `build.started` follows.", body = ref("#/components/schemas/ApprovedRevision"))
))]
pub(crate) async fn approve(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(approval): JsonBody<ApprovalRequest>,
) -> Result<Json<ApprovedRevision>, Problem> {
    let found = found(&shared, &id).await?;
    let hash = ContentHash::parse(&approval.hash).map_err(unreadable("hash"))?;
    let priority = match approval.priority {
        None => Priority::DEFAULT,
        Some(number) => Priority::new(number).map_err(unreadable("priority"))?,
    };
    let context = shared.context();
    let done = specifications::approve(&context, found.id, &hash, &person, priority).await?;
    Ok(Json(ApprovedRevision {
        spec: done.spec,
        revision: done.revision,
        hash: done.hash,
        price: done.price,
    }))
}

/// Asks for another revision.
#[utoipa::path(post, path = "/api/specifications/{id}/revise", operation_id = "revise_specification",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Feedback"), content_type = "application/json"), responses(
    (status = 202, description = "It is asked for; `spec.generated` follows.", body = ref("#/components/schemas/SpecificationReceipt"))
))]
pub(crate) async fn revise(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(feedback): JsonBody<Feedback>,
) -> Result<(StatusCode, Json<SpecificationReceipt>), Problem> {
    let spec = found(&shared, &id).await?.id;
    let (shown, text) = (feedback.shown()?, &feedback.text);
    let context = shared.context();
    specifications::revise_shown(&context, spec, shown.as_ref(), &person.name, text).await?;
    Ok((StatusCode::ACCEPTED, Json(SpecificationReceipt { spec })))
}

/// Puts a specification away.
#[utoipa::path(post, path = "/api/specifications/{id}/reject", operation_id = "reject_specification",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Feedback"), content_type = "application/json"), responses(
    (status = 200, description = "It is put away.", body = ref("#/components/schemas/SpecificationReceipt"))
))]
pub(crate) async fn reject(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(feedback): JsonBody<Feedback>,
) -> Result<Json<SpecificationReceipt>, Problem> {
    let spec = found(&shared, &id).await?.id;
    let (shown, text) = (feedback.shown()?, &feedback.text);
    let context = shared.context();
    specifications::reject_shown(&context, spec, shown.as_ref(), &person, Some(text)).await?;
    Ok(Json(SpecificationReceipt { spec }))
}

/// Finds the specification that a path names.
pub(super) async fn found(
    shared: &ServerState,
    id: &str,
) -> Result<Versioned<Specification>, Problem> {
    find(&shared.services.store, id, "specification", LIST).await
}
