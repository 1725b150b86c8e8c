//! Builds: what they have to show, and that they pause, go on or stop.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::builds::{self, Wish, named};
use ropewalk_desk::length::SAID_BYTES;
use ropewalk_desk::people::Person;
use ropewalk_desk::views::Span;
use ropewalk_desk::views::build::{self, BuildFilter, BuildRow, BuildView};
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_store::Versioned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Here, find, specifications, wanted};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Json as JsonBody, Parameters, Path};

/// Where builds are listed.
const LIST: &str = "/api/builds";

/// Why a build is steered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Why {
    /// The reason, of at most 8,192 bytes.
    #[schemars(length(max = SAID_BYTES))]
    reason: Option<String>,
}

/// A wish that was recorded.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WishReceipt {
    build: BuildId,
    /// The state when it was recorded; what comes of the wish are events.
    state: BuildState,
}

impl WishReceipt {
    /// Says that a wish about `build` was recorded.
    pub(super) fn of(build: &Build) -> Self {
        Self {
            build: build.id,
            state: build.state,
        }
    }
}

/// Which builds are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Only those of this idea.
    idea: Option<String>,
    /// Only those in this state.
    state: Option<String>,
    /// Only those that were approved at this time or later, as in RFC 3339.
    since: Option<String>,
    /// Only those that were approved before this time.
    until: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Lists the builds, the oldest first.
#[utoipa::path(get, path = "/api/builds", operation_id = "list_builds", params(Which), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfBuildRow"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<BuildRow>>, Problem> {
    let filter = BuildFilter {
        idea: wanted("idea", which.idea.as_deref())?,
        state: wanted("state", which.state.as_deref())?,
        approved: Span {
            since: wanted("since", which.since.as_deref())?,
            until: wanted("until", which.until.as_deref())?,
        },
    };
    let store = &shared.services.store;
    let rows = build::list(store, &filter, &shared.builds_with).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(rows, |row| row.build.id.to_string()).map(Json)
}

/// Shows a build with its tasks, and what it has to show for each requirement.
#[utoipa::path(get, path = "/api/builds/{id}", operation_id = "show_build",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The build.", body = ref("#/components/schemas/BuildView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<BuildView>, Problem> {
    let found = found(&shared, &id).await?.into_inner();
    let view = build::show(&shared.services.store, found, &shared.builds_with).await?;
    Ok(Json(view))
}

/// Lets running tasks end and begins no others.
#[utoipa::path(post, path = "/api/builds/{id}/pause", operation_id = "pause_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Why"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded; `build.paused` follows.", body = ref("#/components/schemas/WishReceipt"))
))]
pub(crate) async fn pause(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(why): JsonBody<Why>,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    steer(&shared, &id, Wish::Pause, &person, why).await
}

/// Goes on with a paused, stopped or failed build.
#[utoipa::path(post, path = "/api/builds/{id}/resume", operation_id = "resume_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Why"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded.", body = ref("#/components/schemas/WishReceipt"))
))]
pub(crate) async fn resume(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(why): JsonBody<Why>,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    steer(&shared, &id, Wish::Resume, &person, why).await
}

/// Stops a build; what landed stays.
#[utoipa::path(post, path = "/api/builds/{id}/stop", operation_id = "stop_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Why"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded; `build.completed` follows.", body = ref("#/components/schemas/WishReceipt"))
))]
pub(crate) async fn stop(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(why): JsonBody<Why>,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    steer(&shared, &id, Wish::Stop, &person, why).await
}

async fn steer(
    shared: &ServerState,
    id: &str,
    wish: Wish,
    person: &Person,
    why: Why,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    let build = found(shared, id).await?;
    builds::steer(&shared.context(), &build, wish, person, why.reason).await?;
    Ok((StatusCode::ACCEPTED, Json(WishReceipt::of(&build))))
}

/// Finds the build that a path names; of a specification in its place it is told what became of that.
pub(super) async fn found(shared: &ServerState, id: &str) -> Result<Versioned<Build>, Problem> {
    let store = &shared.services.store;
    let build = find(store, id, "build", LIST).await;
    let Err(unknown) = build else {
        return build;
    };
    let Ok(spec) = specifications::found(shared, id).await else {
        return Err(unknown);
    };
    Err(named::misnamed(store, &spec, id.to_owned()).await?.into())
}
