//! What runs, waits and is held: waits, locks, agents and alerts.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::views::wait::{self, WaitRow};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{Query, Record, Versioned};

use super::Here;
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::take::Parameters;

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

/// Lists the file locks.
#[utoipa::path(get, path = "/api/locks", operation_id = "list_locks", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfLease"))
))]
pub(crate) async fn locks(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Lease>>, Problem> {
    let held = Query::new().equal("state", LeaseState::Granted.as_str());
    records(&shared, &part, held).await
}

/// Lists what every part of every process does.
#[utoipa::path(get, path = "/api/agents", operation_id = "list_agents", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfComponent"))
))]
pub(crate) async fn agents(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Component>>, Problem> {
    records(&shared, &part, Query::new().order_by("role")).await
}

/// Lists what is wrong now.
#[utoipa::path(get, path = "/api/alerts", operation_id = "list_alerts", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfAlert"))
))]
pub(crate) async fn alerts(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Alert>>, Problem> {
    let open = Query::new().equal("cleared", 0).order_by("raised_at");
    records(&shared, &part, open).await
}

async fn records<R: Record>(
    shared: &Shared,
    part: &Part,
    query: Query,
) -> Result<Json<Page<R>>, Problem> {
    let rows = shared.services.store.list::<R>(query).await?;
    let all = rows.into_iter().map(Versioned::into_inner).collect();
    part.of(all, Record::key).map(Json)
}
