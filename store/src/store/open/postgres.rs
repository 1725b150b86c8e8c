//! Opens a schema on a PostgreSQL server: see that the server is fit, make or change the tables.

use chrono::TimeDelta;
use ropewalk_runtime::Clock;
use ropewalk_schemas::advice::Words;
use sqlx::migrate::Migrator;

use super::{Tables, change_tables, newer, start, tables};
use crate::database::dialect::{Purpose, Statement, lock_name};
use crate::database::location::Server;
use crate::database::lock::Session;
use crate::database::{Connection, Database};
use crate::error::OpenError;
use crate::store::Store;

/// The oldest version whose language has all that is used.
const OLDEST_VERSION: i64 = 130_000;

/// How long the last transaction of a writer is remembered.
const WRITER_KEPT: TimeDelta = TimeDelta::days(30);

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/postgres");

/// Opens the schema that the address leads to, and makes its tables if they are not there.
pub(super) async fn open(
    server: &Server,
    clock: Clock,
    session: Option<Session>,
) -> Result<Store, OpenError> {
    let database = Database::postgres(server)?;
    let storage = |source| OpenError::Storage {
        database: server.to_string(),
        source,
    };
    let (mut connection, right) = match session {
        Some(Session { connection, right }) => (connection, Some(right)),
        None => (database.connect(false).await.map_err(storage)?, None),
    };
    let lacking = lacking(&mut connection).await.map_err(storage)?;
    if let Some(reason) = lacking {
        return Err(OpenError::Unfit {
            database: server.to_string(),
            reason,
        });
    }
    // Two processes must not make the tables at once; the lock ends with the connection at the latest.
    opening(&mut connection, "pg_advisory_lock")
        .await
        .map_err(storage)?;
    migrate(&mut connection, server).await?;
    let forgotten = forget(&clock);
    connection.execute(forgotten).await.map_err(storage)?;
    opening(&mut connection, "pg_advisory_unlock")
        .await
        .map_err(storage)?;
    start(database, connection, right, clock)
        .await
        .map_err(storage)
}

async fn opening(connection: &mut Connection, function: &str) -> Result<(), sqlx::Error> {
    let lock = lock_name(Purpose::Open);
    connection.run(format!("SELECT {function}({lock})")).await
}

/// Removes what writers that did not end well have left; one that is only silent notes its next transaction anew.
fn forget(clock: &Clock) -> Statement {
    let mut forget = Statement::new("DELETE FROM writers WHERE at < ");
    forget.bind(clock.now() - WRITER_KEPT);
    forget
}

/// Returns what the server lacks.
async fn lacking(connection: &mut Connection) -> Result<Option<Words>, sqlx::Error> {
    let ask = "SELECT current_setting('server_version_num')::bigint, \
               current_setting('server_encoding'), current_schema()::text";
    let rows = connection.fetch(Statement::new(ask)).await?;
    let mut values = rows.into_iter().flatten();
    let version = values.next().and_then(|value| value.as_integer());
    let encoding = values.next().and_then(crate::value::Value::into_text);
    let schema = values.next().and_then(crate::value::Value::into_text);
    Ok(if version.is_none_or(|version| version < OLDEST_VERSION) {
        Some(("it is older than PostgreSQL 13", "use a newer server").into())
    } else if encoding.as_deref() != Some("UTF8") {
        Some(
            (
                "its encoding is not UTF8",
                "create it with `--encoding UTF8`",
            )
                .into(),
        )
    } else if schema.is_none() {
        Some(
            (
                "its search path names no schema that exists",
                "create the schema",
            )
                .into(),
        )
    } else {
        None
    })
}

/// Brings the tables up to date, whole or not at all: here a change of tables can be undone.
async fn migrate(connection: &mut Connection, server: &Server) -> Result<(), OpenError> {
    let found = tables(connection, &MIGRATIONS)
        .await
        .map_err(|source| OpenError::Storage {
            database: server.to_string(),
            source,
        })?;
    match found {
        Tables::Newer { found, known } => Err(newer(server, found, known)),
        Tables::Current => Ok(()),
        Tables::Older | Tables::Missing => {
            change_tables(connection, &MIGRATIONS)
                .await
                .map_err(|source| OpenError::Migration {
                    database: server.to_string(),
                    source,
                })
        }
    }
}
