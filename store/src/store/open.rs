//! Opens a store: bring the tables of its database up to date, start the writer.

mod postgres;
mod sqlite;

use std::fmt::Display;

use ropewalk_runtime::{Clock, Shutdown, Supervisor};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Connection as _, SqliteConnection};

use crate::database::dialect::Statement;
use crate::database::location::Location;
use crate::database::lock::{InstanceLock, Right};
use crate::database::{Connection, Database};
use crate::error::OpenError;
use crate::store::Store;
use crate::writer;

impl Store {
    /// Opens the database at `location`; makes it, or on a server its tables, if they are not there.
    pub async fn open(location: &Location, clock: Clock) -> Result<Self, OpenError> {
        match location {
            Location::Sqlite(path) => sqlite::open(path, clock).await,
            Location::Postgres(server) => postgres::open(server, clock, None).await,
        }
    }

    /// Opens the database as [`Store::open`] does, for the process that holds `lock`: on a server it commits only in
    /// sessions that hold the lock of the database.
    pub async fn open_holding(
        location: &Location,
        clock: Clock,
        lock: &mut InstanceLock,
    ) -> Result<Self, OpenError> {
        match location {
            Location::Sqlite(path) => sqlite::open(path, clock).await,
            Location::Postgres(server) => postgres::open(server, clock, lock.hand_over()).await,
        }
    }
}

pub(super) use sqlite::make_tables;

async fn start(
    database: Database,
    connection: Connection,
    right: Option<Right>,
    clock: Clock,
) -> Result<Store, sqlx::Error> {
    let tasks = Supervisor::new(Shutdown::new());
    writer::start(database, connection, right, clock, tasks).await
}

/// How the tables of a database compare with those that this version knows.
enum Tables {
    Missing,
    Older,
    Current,
    Newer { found: i64, known: i64 },
}

async fn tables(connection: &mut Connection, steps: &Migrator) -> Result<Tables, sqlx::Error> {
    let exists = Statement::new(connection.dialect().migrations_table());
    if connection.fetch(exists).await?.is_empty() {
        return Ok(Tables::Missing);
    }
    let newest = "SELECT MAX(version) FROM _sqlx_migrations";
    let rows = connection.fetch(Statement::new(newest)).await?;
    let found = rows.first().and_then(|row| row.first()?.as_integer());
    let known = steps.iter().map(|step| step.version).max().unwrap_or(0);
    Ok(match found {
        None => Tables::Missing,
        Some(found) if found > known => Tables::Newer { found, known },
        Some(found) if found == known => Tables::Current,
        Some(_) => Tables::Older,
    })
}

async fn change_tables(connection: &mut Connection, steps: &Migrator) -> Result<(), MigrateError> {
    ropewalk_runtime::failpoint!("store.migrate.before");
    let changed = match connection {
        Connection::Sqlite(raw) => change_all_tables(raw, steps).await,
        Connection::Postgres(raw) => steps.run(raw).await,
    };
    ropewalk_runtime::failpoint!("store.migrate.after");
    changed
}

/// Takes all steps at once: what is stopped in between leaves the tables of before, and each step by itself waits twice for the disk.
/// It waits to write before it reads: whoever reads first and finds that somebody else has written meanwhile is refused at once.
async fn change_all_tables(
    raw: &mut SqliteConnection,
    steps: &Migrator,
) -> Result<(), MigrateError> {
    let mut all = raw.begin_with("BEGIN IMMEDIATE").await?;
    steps.run(&mut *all).await?;
    Ok(all.commit().await?)
}

fn newer(database: impl Display, found: i64, known: i64) -> OpenError {
    OpenError::Newer {
        database: database.to_string(),
        found,
        known,
    }
}
