//! Says whether the program lives, whether it can work, and how much it has done: on the machine itself alone.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ropewalk_bus::TransportStatus;
use ropewalk_desk::views::usage::{self, Scope, UsageRow};
use ropewalk_schemas::model_call::UsageBy;
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
    let rows = usage::list(&shared.services.store, UsageBy::Model, &Scope::default()).await?;
    text.push_str(&used(&rows));
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

/// Says what the models used: the sums that `ropewalk usage` shows, for each model. Whose price is not known for each call
/// has the known part of it and how many calls lack one.
fn used(rows: &[UsageRow]) -> String {
    type Sum = fn(&UsageRow) -> u64;
    let sums: [(&str, &str, Sum); 7] = [
        ("calls", "Calls that models answered.", |row| {
            row.usage.calls
        }),
        ("input_tokens", "Tokens in.", |row| row.usage.input_tokens),
        ("output_tokens", "Tokens out.", |row| {
            row.usage.output_tokens
        }),
        (
            "cache_read_tokens",
            "Tokens in that came from a cache of the provider.",
            |row| row.usage.cache_read_tokens,
        ),
        (
            "cache_write_tokens",
            "Tokens in that went into one.",
            |row| row.usage.cache_write_tokens,
        ),
        (
            "cost_micro_usd",
            "What is known of the cost, in millionths of a dollar.",
            |row| row.usage.known_micro_usd,
        ),
        (
            "unpriced_calls",
            "Calls of which nobody knows the price.",
            |row| row.usage.unpriced_calls,
        ),
    ];
    let mut text = String::new();
    for (what, help, sum) in sums {
        let name = format!("ropewalk_model_{what}_total");
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter").ok();
        for row in rows {
            let model = row.usage.key.as_deref().unwrap_or_default();
            let model = escaped(model);
            writeln!(text, "{name}{{model=\"{model}\"}} {}", sum(row)).ok();
        }
    }
    text
}

/// Writes a value so that it ends no label.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
