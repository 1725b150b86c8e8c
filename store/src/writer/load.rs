//! Reads, in one select, the rows that a batch of change sets depends on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::change_set::Change;
use crate::database::{Connection, Row};
use crate::deliveries::{DeliveryKey, DeliveryState};
use crate::dialect::{self, Dialect, Statement};
use crate::record::Record;
use crate::submission::Submission;
use crate::value::Value;
use crate::writer::evaluate::{Loaded, LoadedDelivery, LoadedRow};

use ropewalk_schemas::lease::Lease;

/// What a batch touches.
#[derive(Debug, Default)]
struct Touched {
    rows: BTreeMap<&'static str, BTreeSet<String>>,
    deliveries: BTreeSet<(i64, String)>,
    events: Vec<String>,
}

impl Touched {
    fn by(batch: &[Submission]) -> Self {
        let mut touched = Self::default();
        for submission in batch {
            for change in &submission.changes {
                touched.add(change);
            }
            let events = submission.events.iter();
            touched
                .events
                .extend(events.map(|event| event.event.id.to_string()));
        }
        touched
    }

    fn add(&mut self, change: &Change) {
        match change {
            Change::Row(row) => self.row(row.table.name, row.key.clone()),
            Change::Grant(lease) => self.row(Lease::TABLE.name, lease.key()),
            Change::Lease(path, ..) => self.row(Lease::TABLE.name, path.key()),
            Change::Close(key, _) => {
                let delivery = (key.sequence, key.subscriber.to_string());
                self.deliveries.insert(delivery);
            }
            Change::Emit(_) => {}
        }
    }

    fn row(&mut self, table: &'static str, key: String) {
        self.rows.entry(table).or_default().insert(key);
    }

    /// Returns a select of (kind, key, number, text, attempts).
    fn select(&self, dialect: Dialect) -> Statement {
        let mut statement = Statement::new(
            "SELECT 'counter', name, value, CAST(NULL AS TEXT), CAST(NULL AS BIGINT) FROM counters \
             UNION ALL SELECT 'sequence', NULL, (",
        );
        statement
            .push(dialect.last_sequence())
            .push("), NULL, NULL");
        for (table, keys) in &self.rows {
            let body = if *table == Lease::TABLE.name {
                "body"
            } else {
                "NULL"
            };
            statement.push(&format!(
                " UNION ALL SELECT '{table}', key, version, {body}, NULL FROM \"{table}\" WHERE key IN (SELECT {} FROM ",
                dialect.scalar()
            ));
            statement.rows(dialect, json!(keys).to_string()).push(")");
        }
        if !self.deliveries.is_empty() {
            statement.push(
                " UNION ALL SELECT 'delivery', d.subscriber, d.sequence, d.state, d.attempts FROM ",
            );
            statement.rows(dialect, json!(self.deliveries).to_string());
            // A cross join keeps its order: the given rows lead, the deliveries are looked up.
            statement.push(&format!(
                " CROSS JOIN deliveries AS d WHERE d.sequence = {} AND d.subscriber = {}",
                dialect::integer(0),
                dialect::text(1)
            ));
        }
        if !self.events.is_empty() {
            statement.push(&format!(
                " UNION ALL SELECT 'event', id, sequence, NULL, NULL FROM events WHERE id IN (SELECT {} FROM ",
                dialect.scalar()
            ));
            statement
                .rows(dialect, json!(self.events).to_string())
                .push(")");
        }
        statement
    }
}

/// Returns the select for `batch`, to look at its plan.
#[cfg(test)]
pub(crate) fn select(dialect: Dialect, batch: &[Submission]) -> Statement {
    Touched::by(batch).select(dialect)
}

/// Loads what `batch` depends on, inside the transaction that will write it.
pub(crate) async fn load(
    connection: &mut Connection,
    batch: &[Submission],
) -> Result<Loaded, sqlx::Error> {
    let touched = Touched::by(batch);
    let mut loaded = Loaded::default();
    let select = touched.select(connection.dialect());
    for row in connection.fetch(select).await? {
        take(&touched, &mut loaded, row);
    }
    Ok(loaded)
}

fn take(touched: &Touched, loaded: &mut Loaded, row: Row) -> Option<()> {
    let mut values = row.into_iter();
    let kind = values.next()?.into_text()?;
    let key = values.next()?;
    let number = values.next()?.as_integer()?;
    let text = values.next().and_then(Value::into_text);
    let attempts = values.next().and_then(|value| value.as_integer());
    match kind.as_str() {
        "sequence" => loaded.last_sequence = number,
        "counter" => match key.into_text()?.as_str() {
            "token" => loaded.token = number,
            "floor" => loaded.floor = number,
            "routing" => loaded.epoch = number,
            _ => {}
        },
        "event" => {
            loaded.events.insert(key.into_text()?.parse().ok()?);
        }
        "delivery" => {
            let key = DeliveryKey {
                sequence: number,
                subscriber: key.into_text()?.parse().ok()?,
            };
            let delivery = LoadedDelivery {
                state: DeliveryState::parse(&text?)?,
                attempts: u32::try_from(attempts?).unwrap_or(u32::MAX),
            };
            loaded.deliveries.insert(key, delivery);
        }
        table => {
            let (table, _) = touched.rows.get_key_value(table)?;
            let row = LoadedRow {
                version: number,
                body: text,
            };
            loaded.rows.insert((*table, key.into_text()?), row);
        }
    }
    Some(())
}
