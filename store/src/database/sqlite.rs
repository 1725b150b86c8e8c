//! Carries statements to a database file.

use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments, AssertSqlSafe, Connection as _, Row as _, TypeInfo, ValueRef};

use super::{READERS, Row, WRITE_TIMEOUT};
use crate::blobs::BlobFiles;
use crate::database::dialect::Statement;
use crate::value::Value;

/// How many rows a reader is ahead of whoever takes them: each that waits for room is a switch of threads.
const ROWS_AHEAD: usize = 1_024;

/// A file and its readers.
#[derive(Debug, Clone)]
pub(crate) struct SqliteDatabase {
    path: PathBuf,
    /// The log beside it.
    log: PathBuf,
    pub(super) readers: SqlitePool,
    /// The data of large events.
    pub(super) blobs: BlobFiles,
}

impl SqliteDatabase {
    pub(super) fn new(path: &Path) -> Self {
        let options = options(path)
            .pragma("query_only", "ON")
            .row_buffer_size(ROWS_AHEAD);
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            // A connection to a file does not break by itself; asking costs a round trip.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options);
        let mut log = path.to_owned().into_os_string();
        log.push("-wal");
        Self {
            path: path.to_owned(),
            log: log.into(),
            readers,
            blobs: BlobFiles::beside(path),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn connect(&self, create: bool) -> Result<SqliteConnection, sqlx::Error> {
        let options = options(&self.path)
            .create_if_missing(create)
            .pragma("wal_autocheckpoint", "0");
        SqliteConnection::connect_with(&options).await
    }

    pub(super) async fn read(&self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        let mut connection = self.readers.acquire().await?;
        fetch(&mut connection, statement).await
    }

    pub(super) fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |file| file.len())
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(WRITE_TIMEOUT)
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

pub(super) async fn fetch(
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

pub(super) async fn execute(
    connection: &mut SqliteConnection,
    statement: Statement,
) -> Result<u64, sqlx::Error> {
    let (sql, arguments) = bound(statement)?;
    let done = sqlx::query_with(AssertSqlSafe(sql), arguments)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
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
