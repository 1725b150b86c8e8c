//! The raw limit of the store: the same rows through one plain connection, one statement per table and batch.

use std::path::Path;

use anyhow::Result;
use ropewalk_schemas::{ComponentName, Event};
use ropewalk_store::Record;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection as _, Executor as _};

use crate::disk;
use crate::words::{Words, step};

const INSERT_EVENTS: &str = "INSERT INTO events (sequence, id, type, source, subject, correlation, priority, time, body) \
     SELECT CAST(row.value ->> 0 AS BIGINT), row.value ->> 1, row.value ->> 2, row.value ->> 3, row.value ->> 4, \
     row.value ->> 5, CAST(row.value ->> 6 AS BIGINT), CAST(row.value ->> 7 AS BIGINT), row.value ->> 8 \
     FROM json_each($1) AS row";
const INSERT_DELIVERIES: &str = "INSERT INTO deliveries (sequence, subscriber, entity, priority, state, attempts, due) \
     SELECT CAST(row.value ->> 0 AS BIGINT), row.value ->> 1, row.value ->> 2, 5, 'open', 0, $2 FROM json_each($1) AS row";
const CLOSE_DELIVERIES: &str = "UPDATE deliveries SET state = 'done', attempts = 1, closed_at = $2 FROM json_each($1) AS row \
     WHERE deliveries.sequence = CAST(row.value ->> 0 AS BIGINT) AND deliveries.subscriber = row.value ->> 1";
const UPSERT_TASKS: &str = "INSERT INTO tasks (key, version, build, task, number, state, body) \
     SELECT row.value ->> 0, 1, row.value ->> 1, row.value ->> 2, CAST(row.value ->> 3 AS BIGINT), row.value ->> 4, \
     row.value ->> 5 FROM json_each($1) AS row WHERE 1 = 1 \
     ON CONFLICT (key) DO UPDATE SET version = tasks.version + 1, state = excluded.state, body = excluded.body";
const UPSERT_LEASE: &str = "INSERT INTO leases (key, version, build, task, attempt, state, token, body) \
     VALUES ($1, 1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key) DO UPDATE SET version = leases.version + 1, \
     build = excluded.build, task = excluded.task, attempt = excluded.attempt, state = excluded.state, \
     token = excluded.token, body = excluded.body";

/// Says what one change of a batch consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// How many deliveries each event has.
    pub(crate) subscribers: usize,
    /// Whether each delivery's end writes a state row.
    pub(crate) state: bool,
}

/// One plain connection to a database that a store has made.
pub(crate) struct RawStore {
    connection: SqliteConnection,
    words: Words,
    event_body: String,
    task_body: String,
    sources: Vec<ComponentName>,
    sequence: i64,
    /// The deliveries that the next batch closes.
    open: Vec<(i64, String)>,
}

impl RawStore {
    /// Connects to the database in `directory` as a store does.
    pub(crate) async fn open(directory: &Path) -> Result<Self> {
        let words = Words::new();
        let sources = (0..7).map(step).collect::<Result<Vec<_>>>()?;
        let event = words.event(&step(1)?, 1)?.to_cloud_event();
        let task = words.task(1)?;
        Ok(Self {
            connection: connect(directory, false).await?,
            event_body: serde_json::to_string(&event)?,
            task_body: serde_json::to_string(&task)?,
            sources,
            sequence: 0,
            open: Vec::new(),
            words,
        })
    }

    /// Commits one batch of `events` events: closes the deliveries of the batch before, inserts events and deliveries,
    /// writes a state row for each delivery closed.
    pub(crate) async fn batch(&mut self, events: usize, shape: Shape) -> Result<()> {
        let now = self.words.clock.now().timestamp_millis();
        let closed = std::mem::take(&mut self.open);
        let mut rows = Vec::with_capacity(events);
        let mut deliveries = Vec::with_capacity(events * shape.subscribers);
        for lane in 0..events {
            self.sequence += 1;
            let event = self.words.event(&self.sources[1], lane)?;
            rows.push(self.event_row(&event, now));
            for source in self.sources.iter().take(shape.subscribers) {
                deliveries.push(json!([
                    self.sequence,
                    source.as_str(),
                    event.subject.as_str()
                ]));
                self.open.push((self.sequence, source.to_string()));
            }
        }
        self.connection.execute("BEGIN IMMEDIATE").await?;
        self.run(CLOSE_DELIVERIES, json!(closed), Some(now)).await?;
        self.run(INSERT_EVENTS, json!(rows), None).await?;
        self.run(INSERT_DELIVERIES, json!(deliveries), Some(now))
            .await?;
        if shape.state {
            let tasks = self.task_rows(events * shape.subscribers);
            self.run(UPSERT_TASKS, tasks, None).await?;
        }
        self.connection.execute("COMMIT").await?;
        Ok(())
    }

    fn event_row(&self, event: &Event, now: i64) -> serde_json::Value {
        json!([
            self.sequence,
            event.id,
            event.event_type(),
            event.source,
            event.subject,
            event.correlation_id,
            5,
            now,
            self.event_body
        ])
    }

    fn task_rows(&self, number: usize) -> serde_json::Value {
        let build = self.words.build.to_string();
        let row = |lane: usize| {
            let (key, task) = (format!("{build}/T-{lane:03}"), format!("T-{lane:03}"));
            json!([key, build, task, lane, "ready", self.task_body])
        };
        (0..number).map(row).collect()
    }

    async fn run(
        &mut self,
        sql: &'static str,
        rows: serde_json::Value,
        now: Option<i64>,
    ) -> Result<()> {
        let mut query = sqlx::query(sql).bind(rows.to_string());
        if let Some(now) = now {
            query = query.bind(now);
        }
        query.execute(&mut self.connection).await?;
        Ok(())
    }

    /// Commits a lease as granted, with a new token.
    pub(crate) async fn grant(&mut self, lease: &ropewalk_schemas::lease::Lease) -> Result<()> {
        self.connection.execute("BEGIN IMMEDIATE").await?;
        self.lease(lease, "granted").await?;
        self.connection
            .execute("UPDATE counters SET value = value + 1 WHERE name = 'token'")
            .await?;
        self.connection.execute("COMMIT").await?;
        Ok(())
    }

    /// Commits a lease as released, with the event that says so.
    pub(crate) async fn release(
        &mut self,
        lease: &ropewalk_schemas::lease::Lease,
        event: &Event,
    ) -> Result<()> {
        self.sequence += 1;
        let row = self.event_row(event, event.time.timestamp_millis());
        self.connection.execute("BEGIN IMMEDIATE").await?;
        self.lease(lease, "released").await?;
        self.run(INSERT_EVENTS, json!([row]), None).await?;
        self.connection.execute("COMMIT").await?;
        Ok(())
    }

    async fn lease(&mut self, lease: &ropewalk_schemas::lease::Lease, state: &str) -> Result<()> {
        sqlx::query(UPSERT_LEASE)
            .bind(lease.key())
            .bind(lease.holder.build.to_string())
            .bind(lease.holder.task.to_string())
            .bind(lease.holder.attempt.to_string())
            .bind(state)
            .bind(self.sequence)
            .bind(serde_json::to_string(lease)?)
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }

    /// Fills the database with `events` handled events, quickly and without a care for a crash.
    pub(crate) async fn fill(&mut self, events: usize) -> Result<()> {
        const BATCH: usize = 5_000;
        let shape = Shape {
            subscribers: 1,
            state: false,
        };
        self.connection.execute("PRAGMA synchronous = OFF").await?;
        for _ in 0..events / BATCH {
            self.batch(BATCH, shape).await?;
        }
        self.batch(0, shape).await
    }

    /// Closes the connection.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.connection.close().await?)
    }
}

/// Connects to the database in `directory`: write-ahead log, every commit on the disk before it is answered.
pub(crate) async fn connect(directory: &Path, create: bool) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(disk::database(directory))
        .create_if_missing(create)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(false);
    Ok(SqliteConnection::connect_with(&options).await?)
}
