//! Copies the tables of a server into a database file, as they were at one moment.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use ropewalk_schemas::ContentHash;

use crate::blobs::BlobFiles;
use crate::database::dialect::{Dialect, Statement};
use crate::database::{Connection, Database, Row};
use crate::error::BackupError;
use crate::store::open::make_tables;
use crate::value::Value;

/// How many rows are in memory at once.
const ROWS_AT_ONCE: u32 = 50;

/// Tables of a database file but those that it keeps for itself, and but the index of words and the sums of model calls:
/// triggers of the file make them of what they are of, and a copy of the sums would count each call twice.
const TABLES: &str = "SELECT name FROM sqlite_master WHERE type = 'table' \
    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_sqlx%' ESCAPE '\\' \
    AND name NOT LIKE 'knowledge\\_text%' ESCAPE '\\' AND name NOT IN ('usage_sums', 'usage_totals') ORDER BY name";

/// Copies what `database`, a server, holds to the file `path`, which is not there yet, and to the folder of the data of
/// large events beside it; `now` is the time that those get.
pub(super) async fn copy(
    database: &Database,
    path: &Path,
    now: SystemTime,
) -> Result<(), BackupError> {
    let mut file = Database::sqlite(path).connect(true).await?;
    make_tables(&mut file).await?;
    let mut server = database.connect(false).await?;
    // All tables are read as they were when the first was.
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    server.run(begin.to_owned()).await?;
    // What making the tables put there is replaced too.
    file.run("BEGIN; DELETE FROM counters".to_owned()).await?;
    for table in texts(file.fetch(Statement::new(TABLES)).await?) {
        copy_table(&mut server, &mut file, &table).await?;
    }
    copy_sequence(&mut server, &mut file).await?;
    file.run("COMMIT".to_owned()).await?;
    copy_blobs(&mut server, path, now).await?;
    server.run("COMMIT".to_owned()).await?;
    server.close().await?;
    Ok(file.close().await?)
}

async fn copy_table(
    server: &mut Connection,
    file: &mut Connection,
    table: &str,
) -> Result<(), BackupError> {
    let columns = columns_of_both(server, file, table).await?;
    let mut select = Statement::new("SELECT ");
    names(&mut select, &columns).push(" FROM ").name(table);
    let cursor = Cursor::open(server, table, select).await?;
    loop {
        let rows = cursor.next(server).await?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            file.execute(insert(table, &columns, row)).await?;
        }
    }
    cursor.close(server).await
}

/// Returns the columns that a table has in both, in the order of the file; either numbers or indexes some by its own
/// means.
async fn columns_of_both(
    server: &mut Connection,
    file: &mut Connection,
    table: &str,
) -> Result<Vec<String>, BackupError> {
    let mut here = Statement::new("SELECT name FROM pragma_table_info(");
    here.bind(table).push(") ORDER BY cid");
    let mut there = Statement::new(
        "SELECT column_name::text FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = ",
    );
    there.bind(table);
    let there = texts(server.fetch(there).await?);
    let mut columns = texts(file.fetch(here).await?);
    columns.retain(|column| there.contains(column));
    Ok(columns)
}

fn insert(table: &str, columns: &[String], row: Row) -> Statement {
    let mut insert = Statement::new("INSERT INTO ");
    insert.name(table).push(" (");
    names(&mut insert, columns).push(") VALUES (");
    for (index, value) in row.into_iter().enumerate() {
        insert.push(if index == 0 { "" } else { ", " }).bind(value);
    }
    insert.push(")");
    insert
}

/// Lets the file count on from the last sequence that was ever given, which is a row of counters on a server.
async fn copy_sequence(server: &mut Connection, file: &mut Connection) -> Result<(), BackupError> {
    let last = server.fetch(Statement::new(Dialect::Postgres.last_sequence()));
    let last = last.await?.into_iter().flatten().next();
    file.run("DELETE FROM counters WHERE name = 'sequence'; DELETE FROM sqlite_sequence WHERE name = 'events'".to_owned())
        .await?;
    let mut set = Statement::new("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ");
    set.bind(last.unwrap_or(Value::Integer(0))).push(")");
    file.execute(set).await?;
    Ok(())
}

async fn copy_blobs(
    server: &mut Connection,
    path: &Path,
    now: SystemTime,
) -> Result<(), BackupError> {
    let files = BlobFiles::beside(path);
    let select = "SELECT DISTINCT ON (hash) hash, body FROM blobs ORDER BY hash";
    let cursor = Cursor::open(server, "data", Statement::new(select)).await?;
    loop {
        let rows = cursor.next(server).await?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            let mut texts = row.into_iter().filter_map(Value::into_text);
            let (Some(hash), Some(text)) = (texts.next(), texts.next()) else {
                continue;
            };
            let kept = ContentHash::parse(&hash)
                .map_err(io::Error::other)
                .and_then(|hash| files.keep(&hash, &text, now));
            kept.map_err(|source| BackupError::Directory {
                path: path.to_owned(),
                source,
            })?;
        }
    }
    cursor.close(server).await
}

/// The rows of a query, some at a time.
///
/// Each has the name of its table: a prepared `FETCH` keeps the columns that it was first run for.
struct Cursor<'a> {
    table: &'a str,
}

impl<'a> Cursor<'a> {
    async fn open(
        server: &mut Connection,
        table: &'a str,
        select: Statement,
    ) -> Result<Self, BackupError> {
        let (select, _) = select.into_parts();
        let declare = format!("DECLARE copied_{table} NO SCROLL CURSOR FOR {select}");
        server.run(declare).await?;
        Ok(Self { table })
    }

    /// Returns the next rows; none at the end.
    async fn next(&self, server: &mut Connection) -> Result<Vec<Row>, BackupError> {
        let fetch = format!("FETCH {ROWS_AT_ONCE} FROM copied_{}", self.table);
        Ok(server.fetch(Statement::new(&fetch)).await?)
    }

    async fn close(self, server: &mut Connection) -> Result<(), BackupError> {
        Ok(server.run(format!("CLOSE copied_{}", self.table)).await?)
    }
}

fn names<'a>(statement: &'a mut Statement, columns: &[String]) -> &'a mut Statement {
    for (index, column) in columns.iter().enumerate() {
        statement
            .push(if index == 0 { "" } else { ", " })
            .name(column);
    }
    statement
}

fn texts(rows: Vec<Row>) -> Vec<String> {
    let values = rows.into_iter().flatten();
    values.filter_map(Value::into_text).collect()
}
