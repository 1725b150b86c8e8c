//! Connects to a database and carries statements to it; the one place that knows a driver.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::TryStreamExt;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments, AssertSqlSafe, Connection as _, Row as _, TypeInfo, ValueRef};

use crate::dialect::Statement;
use crate::value::Value;

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(40);

/// How many readers a process has.
const READERS: u32 = 4;

/// A database and the way to reach it.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// A file.
    Sqlite(SqliteDatabase),
}

#[derive(Debug, Clone)]
pub(crate) struct SqliteDatabase {
    path: PathBuf,
    /// The log beside it.
    log: PathBuf,
    readers: SqlitePool,
}

/// A connection that nobody else uses.
#[derive(Debug)]
pub(crate) enum Connection {
    /// To a file.
    Sqlite(SqliteConnection),
}

/// The values of one row.
pub(crate) type Row = Vec<Value>;

impl Database {
    /// Prepares readers for the database file at `path`, without opening it yet.
    pub(crate) fn sqlite(path: &Path) -> Self {
        let options = options(path).pragma("query_only", "ON");
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            // A connection to a file does not break by itself; asking costs a round trip.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options);
        let mut log = path.to_owned().into_os_string();
        log.push("-wal");
        Self::Sqlite(SqliteDatabase {
            path: path.to_owned(),
            log: log.into(),
            readers,
        })
    }

    /// Opens a connection that may write; its commits never wait for a checkpoint.
    pub(crate) async fn connect(&self, create: bool) -> Result<Connection, sqlx::Error> {
        match self {
            Self::Sqlite(database) => {
                let options = options(&database.path)
                    .create_if_missing(create)
                    .pragma("wal_autocheckpoint", "0");
                let connection = SqliteConnection::connect_with(&options).await?;
                Ok(Connection::Sqlite(connection))
            }
        }
    }

    /// Reads rows on one of the readers.
    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(database) => {
                let mut connection = database.readers.acquire().await?;
                fetch(&mut connection, statement).await
            }
        }
    }

    /// Returns the size of the log that commits are appended to.
    pub(crate) fn log_bytes(&self) -> u64 {
        match self {
            Self::Sqlite(database) => std::fs::metadata(&database.log).map_or(0, |file| file.len()),
        }
    }

    /// Closes the readers.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(database) => database.readers.close().await,
        }
    }
}

impl Connection {
    /// Runs a statement and returns its rows.
    pub(crate) async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => fetch(connection, statement).await,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => {
                let (sql, arguments) = bound(statement)?;
                let done = sqlx::query_with(AssertSqlSafe(sql), arguments)
                    .execute(connection)
                    .await?;
                Ok(done.rows_affected())
            }
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
        }
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(false)
        // A log that was moved whole is cut to this when it is begun again.
        .pragma("journal_size_limit", "16777216")
}

fn bound(statement: Statement) -> Result<(String, SqliteArguments), sqlx::Error> {
    let (sql, values) = statement.into_parts();
    let mut arguments = SqliteArguments::default();
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

async fn fetch(
    connection: &mut SqliteConnection,
    statement: Statement,
) -> Result<Vec<Row>, sqlx::Error> {
    let (sql, arguments) = bound(statement)?;
    sqlx::query_with(AssertSqlSafe(sql), arguments)
        .fetch(connection)
        .and_then(|row| std::future::ready(values(&row)))
        .try_collect()
        .await
}

fn values(row: &SqliteRow) -> Result<Row, sqlx::Error> {
    (0..row.len())
        .map(|index| {
            let raw = row.try_get_raw(index)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            if raw.type_info().name() == "INTEGER" {
                return row.try_get::<i64, _>(index).map(Value::Integer);
            }
            row.try_get::<String, _>(index).map(Value::Text)
        })
        .collect()
}
