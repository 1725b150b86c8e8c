//! Connects to a database and carries statements to it; only the files below know a driver.

pub(crate) mod dialect;
mod fault;
pub(crate) mod location;
pub(crate) mod lock;
mod postgres;
mod sqlite;
pub(crate) mod witness;

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, PgConnection};

use crate::blobs::BlobFiles;
use crate::database::dialect::{Dialect, Statement};
use crate::database::location::Server;
use crate::database::witness::Witness;
use crate::error::LocationError;
use crate::value::Value;

pub(crate) use fault::{Fault, TakeoverError, fault, is_lost, superseded};
pub(crate) use postgres::PostgresDatabase;
pub(crate) use sqlite::SqliteDatabase;

/// How long a statement waits for another process that writes.
const WRITE_TIMEOUT: Duration = Duration::from_secs(40);

/// How often a server that cannot be reached is tried before whoever waits is answered.
pub(crate) const TRIES: u32 = 60;

/// How long it is left alone between two tries.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// How many readers a process has.
const READERS: u32 = 4;

/// A database and the way to reach it.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// A file.
    Sqlite(SqliteDatabase),
    /// A schema on a server.
    Postgres(PostgresDatabase),
}

/// A connection that nobody else uses.
#[derive(Debug)]
pub(crate) enum Connection {
    /// To a file.
    Sqlite(SqliteConnection),
    /// To a server.
    Postgres(PgConnection),
}

/// The values of one row.
pub(crate) type Row = Vec<Value>;

impl Database {
    /// Prepares readers for the database file at `path`, without opening it yet.
    pub(crate) fn sqlite(path: &Path) -> Self {
        Self::Sqlite(SqliteDatabase::new(path))
    }

    /// Prepares readers for a server, without connecting yet.
    pub(crate) fn postgres(server: &Server) -> Result<Self, LocationError> {
        Ok(Self::Postgres(PostgresDatabase::new(server)?))
    }

    /// Returns what it understands.
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Opens a connection that may write; its commits never wait for a checkpoint.
    pub(crate) async fn connect(&self, create: bool) -> Result<Connection, sqlx::Error> {
        match self {
            Self::Sqlite(database) => database.connect(create).await.map(Connection::Sqlite),
            Self::Postgres(database) => database.connect().await.map(Connection::Postgres),
        }
    }

    /// Reads rows on one of the readers.
    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(database) => database.read(statement).await,
            Self::Postgres(database) => database.read(statement).await,
        }
    }

    /// Returns where the data of large events lies, if not in the database itself.
    pub(crate) fn blobs(&self) -> Option<&BlobFiles> {
        match self {
            Self::Sqlite(database) => Some(&database.blobs),
            Self::Postgres(_) => None,
        }
    }

    /// Returns the size of the log that commits are appended to, where it is ours to bound.
    pub(crate) fn log_bytes(&self) -> u64 {
        match self {
            Self::Sqlite(database) => database.log_bytes(),
            Self::Postgres(_) => 0,
        }
    }

    /// Begins to watch over the file, where it is one.
    pub(crate) fn witness(&self) -> Option<Witness> {
        match self {
            Self::Sqlite(database) => Some(Witness::of(database.path())),
            Self::Postgres(_) => None,
        }
    }

    /// Closes the readers.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(database) => database.readers.close().await,
            Self::Postgres(database) => database.readers.close().await,
        }
    }
}

impl Connection {
    /// Returns what it understands.
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => sqlite::fetch(connection, statement).await,
            Self::Postgres(connection) => postgres::fetch(connection, statement).await,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => sqlite::execute(connection, statement).await,
            Self::Postgres(connection) => postgres::execute(connection, statement).await,
        }
    }

    /// Runs statements without values, one after another, in one round trip.
    pub(crate) async fn run(&mut self, script: String) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => {
                sqlite::execute(connection, Statement::new(&script)).await?;
            }
            Self::Postgres(connection) => postgres::run(connection, script).await?,
        }
        Ok(())
    }

    /// Closes the connection.
    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.close().await,
        }
    }
}
