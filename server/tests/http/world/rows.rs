//! Reads every table as it stands, those that come later too, so that nothing which a refusal left stays unseen.

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};

/// What was asked under a key is kept, whatever came of it; the other is what the index of words is made of.
const LEFT_OUT: &str =
    r"name NOT IN ('keyed_requests') AND name NOT LIKE 'knowledge\_text\_%' ESCAPE '\'";

/// The rows of each table.
pub(crate) type Rows = BTreeMap<String, Vec<String>>;

/// Reads the database at `path`.
pub(super) async fn read(path: &Path) -> Result<Rows, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let tables = format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND {LEFT_OUT}");
    let mut rows = Rows::new();
    for table in texts(&mut connection, tables).await? {
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = texts(&mut connection, columns).await?.into_iter();
        let columns: Vec<String> = columns.map(|name| format!("quote(\"{name}\")")).collect();
        let select = format!(
            "SELECT {} AS line FROM \"{table}\" ORDER BY line",
            columns.join(" || ', ' || ")
        );
        let lines = texts(&mut connection, select).await?;
        rows.insert(table, lines);
    }
    connection.close().await?;
    Ok(rows)
}

async fn texts(connection: &mut SqliteConnection, sql: String) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_all(connection)
        .await
}
