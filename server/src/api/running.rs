//! What runs, waits and is held: waits, locks, agents and alerts; and what people are still to be told.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::alerts;
use ropewalk_desk::health::Finding;
use ropewalk_desk::views::notice::{self, NoticeRow};
use ropewalk_desk::views::wait::{self, WaitRow, WaitsView};
use ropewalk_desk::views::{agent, alert, lock};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::lease::Lease;
use ropewalk_store::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Here;
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::{Asker, Json as JsonBody, Parameters};

/// Lists who waits for what, the longest first.
#[utoipa::path(get, path = "/api/waits", operation_id = "list_waits", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfWaitRow"))
))]
pub(crate) async fn waits(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<WaitRow>>, Problem> {
    let rows = wait::list(&shared.services.store).await?;
    part.of(rows, WaitRow::name).map(Json)
}

/// Shows who waits for whom, and who waits in a circle.
#[utoipa::path(get, path = "/api/waits/graph", operation_id = "show_waits", responses(
    (status = 200, description = "All who wait, and the circles.", body = ref("#/components/schemas/WaitsView"))
))]
pub(crate) async fn graph(State(shared): Here) -> Result<Json<WaitsView>, Problem> {
    let (view, _) = wait::graph(&shared.services.store).await?;
    Ok(Json(view))
}

/// Which notices are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Those that arrived, or were over before that, too.
    all: bool,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Lists what people are still to be told or could not be, the oldest first.
#[utoipa::path(get, path = "/api/notices", operation_id = "list_notices", params(Which), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfNoticeRow"))
))]
pub(crate) async fn notices(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<NoticeRow>>, Problem> {
    let notices = notice::list(&shared.services.store, which.all).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(notices, |notice| notice.key.clone()).map(Json)
}

/// Lists the file locks.
#[utoipa::path(get, path = "/api/locks", operation_id = "list_locks", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfLease"))
))]
pub(crate) async fn locks(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Lease>>, Problem> {
    let held = lock::list(&shared.services.store, false).await?;
    part.of(held, Record::key).map(Json)
}

/// Lists what every part of every process does.
#[utoipa::path(get, path = "/api/agents", operation_id = "list_agents", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfComponent"))
))]
pub(crate) async fn agents(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Component>>, Problem> {
    let parts = agent::list(&shared.services.store, true).await?;
    part.of(parts, Record::key).map(Json)
}

/// Looks at everything that a run needs.
#[utoipa::path(get, path = "/api/doctor", operation_id = "examine", responses(
    (status = 200, description = "How each thing is.", body = ref("#/components/schemas/Examination"))
))]
pub(crate) async fn doctor(State(shared): Here) -> Json<Examination> {
    let findings = shared.examined().await;
    Json(Examination { findings })
}

/// Lists what is wrong now.
#[utoipa::path(get, path = "/api/alerts", operation_id = "list_alerts", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfAlert"))
))]
pub(crate) async fn alerts(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Alert>>, Problem> {
    let open = alert::list(&shared.services.store, false).await?;
    part.of(open, Record::key).map(Json)
}

/// How everything is that a run needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Examination {
    /// How each thing is.
    findings: Vec<Finding>,
}

/// Which alert was seen.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenAlert {
    /// Its cause, or the beginning of that.
    cause: String,
}

/// Records that an alert was seen; it stands until its cause is gone.
#[utoipa::path(post, path = "/api/alerts/ack", operation_id = "acknowledge_alert",
    request_body(content = ref("#/components/schemas/SeenAlert"), content_type = "application/json"), responses(
    (status = 200, description = "The alert, with who has seen it and when.", body = ref("#/components/schemas/Alert"))
))]
pub(crate) async fn acknowledge(
    State(shared): Here,
    Asker(person): Asker,
    JsonBody(seen): JsonBody<SeenAlert>,
) -> Result<Json<Alert>, Problem> {
    let alert = alerts::acknowledge(&shared.context(), &seen.cause, &person).await?;
    Ok(Json(alert))
}
