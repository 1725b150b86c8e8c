//! What people want of the tasks of a build, of its rank and of its branch: recorded, and done by the build agent.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::builds::landing::{self, Landing, LandingView};
use ropewalk_desk::builds::{self, tasks};
use ropewalk_desk::length::SAID_BYTES;
use ropewalk_desk::views::task::{self, TaskView};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::{BuildId, Priority, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Here;
use super::builds::{WishReceipt, found};
use crate::problem::Problem;
use crate::take::{Asker, Json as JsonBody, Path};

/// The task that is tried again, and what the next try is to do differently.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// The task.
    task: String,
    /// Advice for whoever tries it, of at most 8,192 bytes.
    #[schemars(length(max = SAID_BYTES))]
    guidance: Option<String>,
}

/// What is said to the models that work on a build.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tell {
    /// The task whose model hears it; all open tasks where none is named.
    task: Option<String>,
    /// The words, of at most 8,192 bytes.
    #[schemars(length(max = SAID_BYTES))]
    text: String,
}

/// Who hears it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recipients {
    build: BuildId,
    /// The tasks whose models hear it with their next turn.
    tasks: Vec<TaskId>,
}

/// How urgent a build is to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rank {
    /// 1 (highest) to 10.
    priority: Priority,
}

/// How a build is to be landed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Land {
    /// Lands nothing yet: a task of the build resolves the conflicts with the branch that it began from, and then it is
    /// asked again.
    #[serde(default)]
    resolve: bool,
    /// The head of the build's branch, as it was shown: refused where it is another now.
    from: Option<String>,
    /// The head of the branch to land in, as it was shown: refused where it is another now.
    onto: Option<String>,
}

/// Shows a task with every attempt at it, and what the gate saw of each.
#[utoipa::path(get, path = "/api/tasks/{build}/{task}", operation_id = "show_task",
    params(("build" = String, Path, description = "The id of its build."),
        ("task" = String, Path, description = "Its name there.")), responses(
    (status = 200, description = "The task.", body = ref("#/components/schemas/TaskView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path((id, task)): Path<(String, String)>,
) -> Result<Json<TaskView>, Problem> {
    let build = found(&shared, &id).await?;
    let name = named(&id, &task)?;
    let view = task::show(&shared.services.store, build.id, &name).await?;
    view.map(Json).ok_or_else(|| unknown(&id, &task))
}

/// Tries a task again; a build that has ended without it runs again.
#[utoipa::path(post, path = "/api/builds/{id}/retry", operation_id = "retry_task",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Retry"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded.", body = ref("#/components/schemas/WishReceipt"))
))]
pub(crate) async fn retry(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(retry): JsonBody<Retry>,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    let build = found(&shared, &id).await?;
    let task = named(&id, &retry.task)?;
    tasks::retry(&shared.context(), &build, &task, &person, retry.guidance).await?;
    Ok(recorded(&build))
}

/// Says something to the models that work on a build; each hears it with its next turn.
#[utoipa::path(post, path = "/api/builds/{id}/tell", operation_id = "tell_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Tell"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded.", body = ref("#/components/schemas/Recipients"))
))]
pub(crate) async fn tell(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(tell): JsonBody<Tell>,
) -> Result<(StatusCode, Json<Recipients>), Problem> {
    let build = found(&shared, &id).await?;
    let (context, named) = (shared.context(), tell.task.as_deref());
    let tasks = tasks::tell(&context, &build, named, &person, &tell.text).await?;
    let told = Recipients {
        build: build.id,
        tasks,
    };
    Ok((StatusCode::ACCEPTED, Json(told)))
}

/// Says how urgent a build is; what it waits for is ruled on anew.
#[utoipa::path(post, path = "/api/builds/{id}/priority", operation_id = "rank_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Rank"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded.", body = ref("#/components/schemas/WishReceipt"))
))]
pub(crate) async fn rank(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(rank): JsonBody<Rank>,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    let build = found(&shared, &id).await?;
    builds::rank(&shared.context(), &build, rank.priority, &person).await?;
    Ok(recorded(&build))
}

/// Says what landing a finished build would come to; nothing moves.
#[utoipa::path(get, path = "/api/builds/{id}/landing", operation_id = "preview_landing",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "What it would come to.", body = ref("#/components/schemas/LandingView"))
))]
pub(crate) async fn preview(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<LandingView>, Problem> {
    let build = found(&shared, &id).await?;
    landing::admits(&build)?;
    Ok(Json(shared.landing(&build).await?))
}

/// Brings the branch of a finished build into the one that it began from.
#[utoipa::path(post, path = "/api/builds/{id}/land", operation_id = "land_build",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/Land"), content_type = "application/json"), responses(
    (status = 202, description = "It is recorded; `build.merged` or a question follows.", body = ref("#/components/schemas/WishReceipt"))
))]
pub(crate) async fn land(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(land): JsonBody<Land>,
) -> Result<(StatusCode, Json<WishReceipt>), Problem> {
    let build = found(&shared, &id).await?;
    let landing = if land.resolve {
        Landing::Resolve
    } else {
        Landing::Land
    };
    let shown = [land.from, land.onto];
    shared.land(&build, landing, &person, shown).await?;
    Ok(recorded(&build))
}

fn recorded(build: &Build) -> (StatusCode, Json<WishReceipt>) {
    (StatusCode::ACCEPTED, Json(WishReceipt::of(build)))
}

fn named(build: &str, task: &str) -> Result<TaskId, Problem> {
    TaskId::parse(task).map_err(|_| unknown(build, task))
}

fn unknown(build: &str, task: &str) -> Problem {
    Problem::unknown("task", task, &format!("/api/builds/{build}"))
}
