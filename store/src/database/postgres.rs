//! Carries statements to a PostgreSQL server.

use std::str::FromStr;

use futures::TryStreamExt;
use sqlx::postgres::{
    PgArguments, PgConnectOptions, PgConnection, PgListener, PgPool, PgPoolOptions, PgRow,
};
use sqlx::{Arguments, AssertSqlSafe, Connection as _, Row as _, TypeInfo, ValueRef};

use super::fault::is_lost;
use super::{PAUSE, READERS, Row, TRIES, WRITE_TIMEOUT};
use crate::database::dialect::{CHANNEL, Statement};
use crate::database::location::Server;
use crate::error::LocationError;
use crate::value::Value;

/// How long a transaction may stand still: a process that was paused must not hold up the others.
const IDLE_SECONDS: u64 = 20;

/// A schema on a server and its readers.
#[derive(Clone)]
pub(crate) struct PostgresDatabase {
    name: String,
    options: Box<PgConnectOptions>,
    pub(super) readers: PgPool,
}

// The options hold a password and would show it.
impl std::fmt::Debug for PostgresDatabase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("PostgresDatabase")
            .field(&self.name)
            .finish()
    }
}

impl PostgresDatabase {
    pub(super) fn new(server: &Server) -> Result<Self, LocationError> {
        let options = options(server)?;
        let reading = options
            .clone()
            .options([("default_transaction_read_only", "on")]);
        let readers = PgPoolOptions::new()
            .max_connections(READERS)
            // Asking first costs a round trip; a read whose connection broke is tried again instead.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(reading);
        Ok(Self {
            name: server.to_string(),
            options: Box::new(options),
            readers,
        })
    }

    /// Opens a connection that may write.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        // What a writer looks for it looks for by key. A plan made while a table was small would read the whole
        // table, and be kept while the table grows.
        let options = PgConnectOptions::clone(&self.options).options([
            ("synchronous_commit", "on"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        PgConnection::connect_with(&options).await
    }

    /// Opens a connection that hears of the events of this schema.
    pub(crate) async fn listen(&self) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(PgConnectOptions::clone(&self.options))
            .await?;
        let name = Statement::new(&format!("SELECT {CHANNEL}"));
        let found = fetch(&mut *pool.acquire().await?, name).await?;
        let name = found.into_iter().flatten().next();
        let channel = name.and_then(Value::into_text).unwrap_or_default();
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(&channel).await?;
        // The end of a connection is told at once, not when there is another.
        listener.eager_reconnect(false);
        Ok(listener)
    }

    /// Reads rows, with patience for a server that is starting; a connection that broke is no failure of the read.
    pub(super) async fn read(&self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        let mut broken = 0;
        loop {
            match self.try_read(statement.clone()).await {
                // Where no connection could be had, the pool has been patient already.
                Err(sqlx::Error::PoolTimedOut) => return Err(sqlx::Error::PoolTimedOut),
                Err(problem) if is_lost(&problem) && broken < TRIES => broken += 1,
                outcome => return outcome,
            }
            // Each idle connection may have broken while nobody looked; after those it is the server.
            if broken > READERS {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn try_read(&self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        let mut connection = self.readers.acquire().await?;
        let outcome = fetch(&mut connection, statement).await;
        if outcome.as_ref().is_err_and(is_lost) {
            connection.close_on_drop();
        }
        outcome
    }
}

fn options(server: &Server) -> Result<PgConnectOptions, LocationError> {
    let options = PgConnectOptions::from_str(server.url())
        .map_err(|problem| LocationError::Unreadable(problem.to_string()))?;
    let idle = format!("{IDLE_SECONDS}s");
    let wait = format!("{}s", WRITE_TIMEOUT.as_secs());
    Ok(options
        .application_name(&format!("ropewalk {}", std::process::id()))
        .options([
            ("lock_timeout", wait.as_str()),
            ("idle_in_transaction_session_timeout", idle.as_str()),
            // A machine that vanished must not hold its locks for hours.
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "3"),
            // Compiling a statement takes longer than any of ours runs.
            ("jit", "off"),
        ]))
}

fn bound(statement: Statement) -> Result<(String, PgArguments), sqlx::Error> {
    let (sql, values) = statement.into_parts();
    let mut arguments = PgArguments::default();
    for value in values {
        match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Text(text) => arguments.add(text),
            Value::Integer(number) => arguments.add(number),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok((sql, arguments))
}

pub(super) async fn fetch(
    connection: &mut PgConnection,
    statement: Statement,
) -> Result<Vec<Row>, sqlx::Error> {
    let (sql, arguments) = bound(statement)?;
    sqlx::query_with(AssertSqlSafe(sql), arguments)
        .fetch(connection)
        .and_then(|row| std::future::ready(values(&row)))
        .try_collect()
        .await
}

pub(super) async fn execute(
    connection: &mut PgConnection,
    statement: Statement,
) -> Result<u64, sqlx::Error> {
    let (sql, arguments) = bound(statement)?;
    let done = sqlx::query_with(AssertSqlSafe(sql), arguments)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

pub(super) async fn run(connection: &mut PgConnection, script: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(script))
        .execute(connection)
        .await
        .map(drop)
}

fn values(row: &PgRow) -> Result<Row, sqlx::Error> {
    (0..row.len())
        .map(|index| {
            let raw = row.try_get_raw(index)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            match raw.type_info().name() {
                "INT8" => row.try_get::<i64, _>(index).map(Value::Integer),
                "INT4" => row.try_get::<i32, _>(index).map(Value::from),
                "BOOL" => row.try_get::<bool, _>(index).map(Value::from),
                _ => row.try_get::<String, _>(index).map(Value::Text),
            }
        })
        .collect()
}
