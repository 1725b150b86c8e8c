//! Writes what a batch decided: one statement per table, whatever the number of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value as Json, json};

use crate::deliveries::DeliveryKey;
use crate::dialect::{self, Dialect, Statement};
use crate::record::{ColumnKind, Table};
use crate::submission::EncodedEvent;
use crate::writer::evaluate::{FinalDelivery, FinalRow, NewDelivery, Writes};

/// Returns the statements of a batch.
pub(crate) fn statements(dialect: Dialect, writes: &Writes, now: DateTime<Utc>) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut written: BTreeMap<&str, (&'static Table, Vec<Json>)> = BTreeMap::new();
    let mut deleted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for ((name, key), row) in &writes.rows {
        match row {
            FinalRow::Written {
                table,
                version,
                row,
            } => {
                let mut values = vec![json!(key), json!(version)];
                values.extend(row.columns.iter().map(crate::value::Value::to_json));
                values.push(json!(row.body));
                let (_, rows) = written.entry(name).or_insert_with(|| (table, Vec::new()));
                rows.push(Json::Array(values));
            }
            FinalRow::Deleted => deleted.entry(name).or_default().push(key),
        }
    }
    statements.extend(
        deleted
            .iter()
            .map(|(table, keys)| delete(dialect, table, keys)),
    );
    statements.extend(
        written
            .into_values()
            .map(|(table, rows)| upsert(dialect, table, rows)),
    );
    if !writes.events.is_empty() {
        statements.push(insert_events(dialect, &writes.events));
    }
    if !writes.deliveries.is_empty() {
        statements.push(insert_deliveries(dialect, &writes.deliveries, now));
    }
    if !writes.closes.is_empty() {
        statements.push(close_deliveries(dialect, &writes.closes));
    }
    if writes.token.is_some() || writes.floor.is_some() {
        statements.push(count(writes.token, writes.floor));
    }
    statements
}

pub(super) fn upsert(dialect: Dialect, table: &'static Table, rows: Vec<Json>) -> Statement {
    let names: Vec<String> = ["key", "version"]
        .into_iter()
        .chain(table.columns.iter().map(|column| column.name))
        .chain(["body"])
        .map(|name| format!("\"{name}\""))
        .collect();
    let kinds = [ColumnKind::Text, ColumnKind::Integer]
        .into_iter()
        .chain(table.columns.iter().map(|column| column.kind))
        .chain([ColumnKind::Text]);
    let values: Vec<String> = kinds
        .enumerate()
        .map(|(index, kind)| match kind {
            ColumnKind::Text => dialect::text(index),
            ColumnKind::Integer => dialect::integer(index),
        })
        .collect();
    let updates: Vec<String> = names[1..]
        .iter()
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    let mut statement = Statement::new("INSERT INTO ");
    statement.name(table.name).push(&format!(
        " ({}) SELECT {} FROM ",
        names.join(", "),
        values.join(", ")
    ));
    statement
        .rows(dialect, Json::Array(rows).to_string())
        .push(&format!(
            " WHERE 1 = 1 ON CONFLICT (key) DO UPDATE SET {}",
            updates.join(", ")
        ));
    statement
}

pub(super) fn delete(dialect: Dialect, table: &str, keys: &[&str]) -> Statement {
    let mut statement = Statement::new("DELETE FROM ");
    statement
        .name(table)
        .push(&format!(" WHERE key IN (SELECT {} FROM ", dialect.scalar()))
        .rows(dialect, json!(keys).to_string())
        .push(")");
    statement
}

fn insert_events(dialect: Dialect, events: &[(i64, Arc<EncodedEvent>)]) -> Statement {
    let rows: Vec<Json> = events
        .iter()
        .map(|(sequence, encoded)| {
            let event = &encoded.event;
            json!([
                sequence,
                event.id,
                event.event_type,
                event.source,
                event.subject,
                event.correlationid,
                event.priority,
                event.time.timestamp_millis(),
                encoded.body,
            ])
        })
        .collect();
    let mut statement = Statement::new(
        "INSERT INTO events (sequence, id, type, source, subject, correlation, priority, time, body) SELECT ",
    );
    statement.push(&format!(
        "{}, {}, {}, {}, {}, {}, {}, {}, {} FROM ",
        dialect::integer(0),
        dialect::text(1),
        dialect::text(2),
        dialect::text(3),
        dialect::text(4),
        dialect::text(5),
        dialect::integer(6),
        dialect::integer(7),
        dialect::text(8),
    ));
    statement.rows(dialect, json!(rows).to_string());
    statement
}

fn insert_deliveries(
    dialect: Dialect,
    deliveries: &[NewDelivery],
    now: DateTime<Utc>,
) -> Statement {
    let rows: Vec<Json> = deliveries
        .iter()
        .map(|delivery| {
            json!([
                delivery.key.sequence,
                delivery.key.subscriber,
                delivery.entity,
                delivery.priority,
            ])
        })
        .collect();
    let mut statement = Statement::new(
        "INSERT INTO deliveries (sequence, subscriber, entity, priority, state, attempts, due) SELECT ",
    );
    statement.push(&format!(
        "{}, {}, {}, {}, 'open', 0, ",
        dialect::integer(0),
        dialect::text(1),
        dialect::text(2),
        dialect::integer(3),
    ));
    statement
        .bind(now)
        .push(" FROM ")
        .rows(dialect, json!(rows).to_string());
    statement
}

fn close_deliveries(dialect: Dialect, closes: &BTreeMap<DeliveryKey, FinalDelivery>) -> Statement {
    let rows: Vec<Json> = closes
        .iter()
        .map(|(key, delivery)| {
            json!([
                key.sequence,
                key.subscriber,
                delivery.state.as_str(),
                delivery.attempts,
                delivery.due.timestamp_millis(),
                delivery.error,
                delivery.closed_at.map(|time| time.timestamp_millis()),
            ])
        })
        .collect();
    let mut statement = Statement::new("UPDATE deliveries SET ");
    statement.push(&format!(
        "state = {}, attempts = {}, due = {}, error = {}, closed_at = {} FROM ",
        dialect::text(2),
        dialect::integer(3),
        dialect::integer(4),
        dialect::text(5),
        dialect::integer(6),
    ));
    statement
        .rows(dialect, json!(rows).to_string())
        .push(&format!(
            " WHERE deliveries.sequence = {} AND deliveries.subscriber = {}",
            dialect::integer(0),
            dialect::text(1),
        ));
    statement
}

pub(super) fn count(token: Option<i64>, floor: Option<i64>) -> Statement {
    let mut statement =
        Statement::new("UPDATE counters SET value = CASE name WHEN 'token' THEN COALESCE(");
    statement
        .bind(token)
        .push(", value) ELSE COALESCE(")
        .bind(floor)
        .push(", value) END WHERE name IN ('token', 'floor')");
    statement
}
