//! Makes a database file that may leave this machine, and takes out of one what must not come along.

mod server;

use std::path::Path;

use crate::database::Database;
use crate::database::dialect::{Dialect, Statement};
use crate::error::BackupError;
use crate::store::Store;

/// What stays behind: file locks of what runs here and that it does, what people were told with the nonces of its
/// buttons, the phones that are linked, and requests that are done once.
const LEFT_BEHIND: [&str; 5] = [
    "leases",
    "components",
    "notices",
    "phones",
    "keyed_requests",
];

impl Store {
    /// Writes everything that is in the database to a file at `path`, where nothing is yet, as it was at one moment; runs
    /// beside the writer. What a server holds of large events goes to the folder beside it, where a database file has it.
    pub async fn copy_to(&self, path: &Path) -> Result<(), BackupError> {
        if self.database.dialect() == Dialect::Postgres {
            return server::copy(&self.database, path, self.clock.now().into()).await;
        }
        let mut connection = self.database.connect(false).await?;
        let mut statement = Statement::new("VACUUM INTO ");
        statement.bind(path.to_string_lossy().as_ref());
        connection.execute(statement).await?;
        Ok(connection.close().await?)
    }
}

/// Takes out of the database file at `path`, which nobody writes, what lets somebody in or holds what runs elsewhere:
/// locks, the parts of a program, claims of deliveries, notices with their nonces, phones and requests under a key.
///
/// The pages that they were on are overwritten.
pub async fn leave_behind(path: &Path) -> Result<(), BackupError> {
    let mut connection = Database::sqlite(path).connect(false).await?;
    let mut script = "PRAGMA secure_delete = ON; BEGIN IMMEDIATE;".to_owned();
    let tables = LEFT_BEHIND.map(|table| {
        format!(
            "UPDATE counters SET value = MAX(value, (SELECT COALESCE(MAX(version), 0) FROM {table})) \
             WHERE name = 'floor'; DELETE FROM {table};"
        )
    });
    script.push_str(&tables.concat());
    script.push_str("UPDATE deliveries SET claimed_by = NULL, claimed_until = NULL WHERE claimed_by IS NOT NULL; COMMIT;");
    connection.run(script).await?;
    Ok(connection.close().await?)
}
