//! Says whether the program lives, whether it can work, and how much it has done: on the machine itself alone.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ropewalk_bus::TransportStatus;
use serde_json::json;

use crate::problem::Problem;
use crate::shared::Shared;

/// What metrics are sent as.
const TEXT: &str = "text/plain; version=0.0.4";

/// Says that the program lives.
pub(crate) async fn livez() -> Response {
    axum::Json(json!({ "status": "ok" })).into_response()
}

/// Says whether the store answers; a broker that is away only delays.
pub(crate) async fn readyz(State(shared): State<Shared>) -> Response {
    let bus = match shared.services.bus.status() {
        TransportStatus::Up => "up".to_owned(),
        TransportStatus::Starting => "starting".to_owned(),
        TransportStatus::Down { reason, .. } => format!("down: {reason}"),
    };
    match shared.services.store.statistics().await {
        Ok(_) => axum::Json(json!({ "status": "ok", "store": "up", "bus": bus })).into_response(),
        Err(error) => {
            let text = format!("the store does not answer: {error}");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", text).into_response()
        }
    }
}

/// Shows what the store holds and what was answered.
pub(crate) async fn metrics(State(shared): State<Shared>) -> Result<Response, Problem> {
    let statistics = shared.services.store.statistics().await?;
    let gauges = [
        ("ropewalk_events", "Events stored.", statistics.events),
        (
            "ropewalk_open_deliveries",
            "Deliveries to be handled.",
            statistics.open_deliveries,
        ),
        (
            "ropewalk_dead_letters",
            "Deliveries that failed for good.",
            statistics.dead_letters,
        ),
        (
            "ropewalk_store_bytes",
            "The size of the database.",
            statistics.size_bytes,
        ),
    ];
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (name, help, value) in gauges {
        writeln!(
            text,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
        )
        .ok();
    }
    let name = "ropewalk_http_requests_total";
    writeln!(
        text,
        "# HELP {name} Requests answered.\n# TYPE {name} counter"
    )
    .ok();
    for (digit, count) in shared.counters.by_digit() {
        writeln!(text, "{name}{{class=\"{digit}xx\"}} {count}").ok();
    }
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}
