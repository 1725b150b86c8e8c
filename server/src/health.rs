//! Says whether the program lives, whether it can work, and how much it has done: on the machine itself alone.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ropewalk_bus::TransportStatus;
use ropewalk_desk::halt;
use ropewalk_desk::views::metrics::{self, Metric, Sample};
use ropewalk_schemas::advice::{Advice, Words};
use serde_json::json;

use crate::problem::Problem;
use crate::shared::ServerState;

/// What metrics are sent as.
const TEXT: &str = "text/plain; version=0.0.4";

/// Says that the program lives.
pub(crate) async fn livez() -> Response {
    axum::Json(json!({ "status": "ok" })).into_response()
}

/// Says whether the store answers, and may still be written at all; a broker that is away only delays.
pub(crate) async fn readyz(State(shared): State<ServerState>) -> Response {
    let bus = match shared.services.bus.status() {
        TransportStatus::Up => "up".to_owned(),
        TransportStatus::Starting => "starting".to_owned(),
        TransportStatus::Down { reason, .. } => format!("down: {reason}"),
    };
    let store = &shared.services.store;
    if let Some(refusal) = store.refusal() {
        return Problem::from(refusal).into_response();
    }
    // Whoever probes asks again each few seconds: one row tells as much as counting all of them.
    match halt::standing(store).await {
        Ok(_) => axum::Json(json!({ "status": "ok", "store": "up", "bus": bus })).into_response(),
        Err(error) => {
            let words = Words {
                message: format!("the store does not answer: {error}"),
                next: error.next(),
            };
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", words).into_response()
        }
    }
}

/// Shows what the store holds and what was answered.
pub(crate) async fn metrics(State(shared): State<ServerState>) -> Result<Response, Problem> {
    let mut metrics = metrics::list(&shared.services.store).await?;
    let answered = shared.counters.by_digit().map(|(digit, value)| Sample {
        labels: BTreeMap::from([("class", format!("{digit}xx"))]),
        value,
    });
    metrics.push(Metric {
        name: "ropewalk_http_requests_total".to_owned(),
        help: "Requests answered.",
        kind: "counter",
        samples: answered.collect(),
    });
    let text = metrics::text(&metrics);
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}
