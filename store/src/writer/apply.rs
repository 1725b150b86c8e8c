//! Writes what a batch decided: one statement per table, whatever the number of rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::database::dialect::{self, Dialect, Statement, json};
use crate::deliveries::DeliveryKey;
use crate::record::{ColumnKind, Table};
use crate::submission::EncodedEvent;
use crate::writer::evaluate::{FinalDelivery, FinalRow, NewDelivery, Writes};

/// Returns the statements of a batch.
pub(crate) fn statements(dialect: Dialect, writes: &Writes, now: DateTime<Utc>) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut written: BTreeMap<&str, (&'static Table, Rows)> = BTreeMap::new();
    let mut deleted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for ((name, key), row) in &writes.rows {
        match row {
            FinalRow::Written {
                table,
                version,
                row,
            } => {
                let (_, rows) = written.entry(name).or_insert_with(|| (table, Rows::new()));
                rows.add(*version, &row.elements);
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
    if writes.events.iter().any(|(_, event)| event.blob.is_some()) {
        statements.push(insert_blobs(dialect, &writes.events));
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

/// Rows as the text of a JSON array, each an array of a number and of elements that were written before.
pub(super) struct Rows(String);

impl Rows {
    pub(super) fn new() -> Self {
        Self("[".to_owned())
    }

    fn add(&mut self, number: i64, elements: &str) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        // Writing to a string cannot fail.
        write!(self.0, "{comma}[{number},{elements}]").unwrap_or_default();
    }

    fn into_text(mut self) -> String {
        self.0.push(']');
        self.0
    }
}

pub(super) fn upsert(dialect: Dialect, table: &'static Table, rows: Rows) -> Statement {
    let names: Vec<String> = ["version", "key"]
        .into_iter()
        .chain(table.columns.iter().map(|column| column.name))
        .chain(["body"])
        .map(|name| format!("\"{name}\""))
        .collect();
    let kinds = [ColumnKind::Integer, ColumnKind::Text]
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
    let updates: Vec<String> = names
        .iter()
        .filter(|name| *name != "\"key\"")
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    let mut statement = Statement::new("INSERT INTO ");
    statement.name(table.name).push(&format!(
        " ({}) SELECT {} FROM ",
        names.join(", "),
        values.join(", ")
    ));
    statement.rows(dialect, rows.into_text()).push(&format!(
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
        .rows(dialect, json(&keys))
        .push(")");
    statement
}

fn insert_events(dialect: Dialect, events: &[(i64, Arc<EncodedEvent>)]) -> Statement {
    let mut rows = Rows::new();
    for (sequence, encoded) in events {
        rows.add(*sequence, &encoded.elements);
    }
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
    statement.rows(dialect, rows.into_text());
    statement
}

/// Notes where the data of large events lies; a server is given the data itself.
pub(super) fn insert_blobs(dialect: Dialect, events: &[(i64, Arc<EncodedEvent>)]) -> Statement {
    let blobs = events
        .iter()
        .filter_map(|(sequence, event)| Some((sequence, event.blob.as_ref()?)));
    let (columns, rows) = match dialect {
        Dialect::Sqlite => {
            let rows: Vec<_> = blobs.map(|(at, blob)| (at, &blob.hash)).collect();
            ("sequence, hash", json(&rows))
        }
        Dialect::Postgres => {
            let rows: Vec<_> = blobs
                .map(|(at, blob)| (at, &blob.hash, &blob.text))
                .collect();
            ("sequence, hash, body", json(&rows))
        }
    };
    let values = match dialect {
        Dialect::Sqlite => format!("{}, {}", dialect::integer(0), dialect::text(1)),
        Dialect::Postgres => format!(
            "{}, {}, {}",
            dialect::integer(0),
            dialect::text(1),
            dialect::text(2)
        ),
    };
    let mut statement = Statement::new(&format!(
        "INSERT INTO blobs ({columns}) SELECT {values} FROM "
    ));
    statement.rows(dialect, rows);
    statement
}

fn insert_deliveries(
    dialect: Dialect,
    deliveries: &[NewDelivery],
    now: DateTime<Utc>,
) -> Statement {
    let rows: Vec<_> = deliveries
        .iter()
        .map(|delivery| {
            (
                delivery.key.sequence,
                &delivery.key.subscriber,
                &delivery.entity,
                delivery.priority,
            )
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
        .rows(dialect, json(&rows));
    statement
}

fn close_deliveries(dialect: Dialect, closes: &BTreeMap<DeliveryKey, FinalDelivery>) -> Statement {
    let rows: Vec<_> = closes
        .iter()
        .map(|(key, delivery)| {
            (
                key.sequence,
                &key.subscriber,
                delivery.state.as_str(),
                delivery.attempts,
                delivery.due.timestamp_millis(),
                &delivery.error,
                delivery.closed_at.map(|time| time.timestamp_millis()),
            )
        })
        .collect();
    let mut statement = Statement::new("UPDATE deliveries SET ");
    statement.push(&format!(
        "state = {}, attempts = {}, due = {}, error = {}, closed_at = {}, \
         claimed_by = NULL, claimed_until = NULL FROM ",
        dialect::text(2),
        dialect::integer(3),
        dialect::integer(4),
        dialect::text(5),
        dialect::integer(6),
    ));
    statement.rows(dialect, json(&rows)).push(&format!(
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
