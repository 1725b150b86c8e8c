//! Reads, in one select, the rows that a batch of change sets depends on.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::change_set::Change;
use crate::database::dialect::{self, Dialect, Statement, json};
use crate::deliveries::{DeliveryKey, DeliveryState};
use crate::record::Record;
use crate::submission::Submission;
use crate::writer::evaluate::{BACKLOG_LIMIT, LoadedDelivery, LoadedRow, LoadedState};
use crate::writer::link::Link;

use ropewalk_schemas::lease::Lease;

/// What a batch touches.
#[derive(Debug, Default)]
struct BatchKeys {
    rows: BTreeMap<&'static str, BTreeSet<String>>,
    deliveries: BTreeSet<(i64, String)>,
    events: Vec<String>,
    /// Whether it matters how much waits to be handled.
    intake: bool,
}

impl BatchKeys {
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
            touched.intake |= submission.is_intake();
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

    /// Returns a select of one row that holds all: a row each would cross from thread to thread by itself.
    fn select(&self, dialect: Dialect) -> Statement {
        let mut statement = Statement::new(dialect.gather());
        statement.push(
            "(SELECT 'counter' AS kind, name AS key, value AS number, CAST(NULL AS TEXT) AS text, \
             CAST(NULL AS BIGINT) AS attempts FROM counters \
             UNION ALL SELECT 'sequence', NULL, (",
        );
        statement
            .push(dialect.last_sequence())
            .push("), NULL, NULL");
        if self.intake {
            // A partial index counts them; no further than it matters.
            statement.push(&format!(
                " UNION ALL SELECT 'open', NULL, (SELECT COUNT(*) FROM \
                 (SELECT 1 FROM deliveries WHERE state = 'open' LIMIT {BACKLOG_LIMIT}) AS open), NULL, NULL"
            ));
        }
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
            statement.rows(dialect, json(keys)).push(")");
        }
        if !self.deliveries.is_empty() {
            statement.push(
                " UNION ALL SELECT 'delivery', d.subscriber, d.sequence, d.state, d.attempts FROM ",
            );
            statement.rows(dialect, json(&self.deliveries));
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
            statement.rows(dialect, json(&self.events)).push(")");
        }
        statement.push(") AS touched");
        statement
    }
}

/// Returns the select for `batch`, to look at its plan.
#[cfg(test)]
pub(crate) fn select(dialect: Dialect, batch: &[Submission]) -> Statement {
    BatchKeys::by(batch).select(dialect)
}

/// Begins the transaction that will write `batch`, and loads what it depends on.
pub(crate) async fn begin(
    link: &mut Link,
    batch: &[Submission],
) -> Result<LoadedState, sqlx::Error> {
    let touched = BatchKeys::by(batch);
    let select = touched.select(link.connection.dialect());
    let rows = link.begin_with(select).await?;
    let gathered = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next()?.into_text())
        .unwrap_or_default();
    let found: Vec<GatheredRow> = serde_json::from_str(&gathered)
        .map_err(|problem| sqlx::Error::Decode(Box::new(problem)))?;
    let mut loaded = LoadedState::default();
    for row in found {
        take(&touched, &mut loaded, row);
    }
    Ok(loaded)
}

/// Kind, key, number, text and attempts of something that was loaded.
#[derive(Deserialize)]
struct GatheredRow(String, Option<String>, i64, Option<String>, Option<i64>);

fn take(touched: &BatchKeys, loaded: &mut LoadedState, found: GatheredRow) -> Option<()> {
    let GatheredRow(kind, key, number, text, attempts) = found;
    match kind.as_str() {
        "sequence" => loaded.last_sequence = number,
        "open" => loaded.open = number,
        "counter" => match key?.as_str() {
            "token" => loaded.token = number,
            "floor" => loaded.floor = number,
            "routing" => loaded.epoch = number,
            _ => {}
        },
        "event" => {
            loaded.events.insert(key?.parse().ok()?);
        }
        "delivery" => {
            let key = DeliveryKey {
                sequence: number,
                subscriber: key?.parse().ok()?,
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
            loaded.rows.insert((*table, key?), row);
        }
    }
    Some(())
}
