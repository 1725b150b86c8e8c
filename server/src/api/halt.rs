//! The halt: that people have stopped everything, and let it go on.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::halt;
use ropewalk_desk::length::SAID_BYTES;
use ropewalk_schemas::halt::Halt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Here;
use crate::problem::Problem;
use crate::take::{Asker, Json as JsonBody};

/// Why everything is stopped.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopAll {
    /// The reason, of at most 8,192 bytes.
    #[schemars(length(max = SAID_BYTES))]
    reason: Option<String>,
}

/// Whether everything is stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HaltState {
    /// Who stopped everything, and since when; none where nobody has.
    halt: Option<Halt>,
}

/// Shows whether everything is stopped.
#[utoipa::path(get, path = "/api/halt", operation_id = "show_halt", responses(
    (status = 200, description = "It.", body = ref("#/components/schemas/HaltState"))
))]
pub(crate) async fn show(State(shared): Here) -> Result<Json<HaltState>, Problem> {
    let halt = halt::standing(&shared.services.store).await?;
    Ok(Json(HaltState { halt }))
}

/// Stops everything: no model is asked and no command begins until it is lifted.
#[utoipa::path(post, path = "/api/halt", operation_id = "stop_everything",
    request_body(content = ref("#/components/schemas/StopAll"), content_type = "application/json"), responses(
    (status = 200, description = "Everything is stopped.", body = ref("#/components/schemas/Halt"))
))]
pub(crate) async fn stop(
    State(shared): Here,
    Asker(person): Asker,
    JsonBody(why): JsonBody<StopAll>,
) -> Result<Json<Halt>, Problem> {
    let halt = halt::stop(&shared.context(), &person, why.reason).await?;
    Ok(Json(halt))
}

/// Lets everything go on where it stands.
#[utoipa::path(delete, path = "/api/halt", operation_id = "resume_everything", responses(
    (status = 200, description = "Everything goes on.", body = ref("#/components/schemas/Halt"))
))]
pub(crate) async fn lift(State(shared): Here, Asker(person): Asker) -> Result<Json<Halt>, Problem> {
    Ok(Json(halt::lift(&shared.context(), &person).await?))
}
