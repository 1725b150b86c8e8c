//! Checks, backs up and measures a database.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::database::dialect::{Dialect, Statement};
use crate::database::{Connection, Fault, fault};
use crate::error::{BackupError, CommitError, ReadError};
use crate::store::Store;
use crate::writer::translate;

/// Says whether a database is intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Every page was read and fits.
    Intact,
    /// The first thing that does not fit.
    Damaged(String),
}

/// Counts of what a store holds; whoever watches asks for them again and again, so that none takes longer the more there is that
/// is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Events that were ever written, forgotten ones too.
    pub written: u64,
    /// Deliveries to be handled.
    pub open_deliveries: u64,
    /// Deliveries that failed for good.
    pub dead_letters: u64,
    /// Deliveries that this version does not understand.
    pub parked: u64,
    /// Subscribers.
    pub subscriptions: u64,
    /// The size of the database, without what is not yet checkpointed.
    pub size_bytes: u64,
}

impl Store {
    /// Reads the whole database and says whether it is intact; runs beside the writer.
    pub async fn check(&self) -> Result<Health, ReadError> {
        let mut connection = self.database.connect(false).await?;
        let health = quick_check(&mut connection).await?;
        connection.close().await?;
        Ok(health)
    }

    /// Writes a row and takes it back: an error says why nothing can be stored now. It waits for whoever writes, as every
    /// write does.
    pub async fn try_write(&self) -> Result<(), CommitError> {
        let connected = self.database.connect(false).await;
        let mut connection = connected.map_err(translate)?;
        let begin = match self.database.dialect() {
            Dialect::Sqlite => "BEGIN IMMEDIATE",
            Dialect::Postgres => "BEGIN",
        };
        let script = format!("{begin}; UPDATE counters SET value = value; ROLLBACK;");
        // One that failed is taken back with its connection.
        connection.run(script).await.map_err(translate)?;
        connection.close().await.map_err(translate)
    }

    /// Writes a backup of a database file into `directory` and keeps the newest `keep` there; runs beside the writer.
    pub async fn backup(&self, directory: &Path, keep: usize) -> Result<PathBuf, BackupError> {
        if self.database.dialect() == Dialect::Postgres {
            return Err(BackupError::Elsewhere);
        }
        let mut connection = self.database.connect(false).await?;
        let path = backup(&mut connection, directory, self.clock.now(), keep).await?;
        connection.close().await?;
        Ok(path)
    }

    /// Counts the events that the store holds, which takes the longer the more they are.
    pub async fn count_events(&self) -> Result<u64, ReadError> {
        self.number(Statement::new("SELECT COUNT(*) FROM events"))
            .await
    }

    /// Counts what the store holds.
    pub async fn statistics(&self) -> Result<Statistics, ReadError> {
        let statement = count_all(self.database.dialect());
        let rows = self.database.read(statement).await?;
        let number = |index: usize| {
            rows.first()
                .and_then(|row| row.get(index)?.as_integer())
                .and_then(|number| u64::try_from(number).ok())
                .unwrap_or(0)
        };
        Ok(Statistics {
            written: number(0),
            open_deliveries: number(1),
            dead_letters: number(2),
            parked: number(3),
            subscriptions: number(4),
            size_bytes: number(5),
        })
    }
}

/// Returns a select of the numbers of [`Statistics`], in its order.
pub(crate) fn count_all(dialect: Dialect) -> Statement {
    let mut statement = Statement::new("SELECT (");
    statement.push(dialect.last_sequence()).push(
        "), \
             (SELECT COUNT(*) FROM deliveries WHERE state = 'open'), \
             (SELECT COUNT(*) FROM deliveries WHERE state = 'dead' \
              AND state NOT IN ('open', 'done')), \
             (SELECT COUNT(*) FROM deliveries WHERE state = 'parked' \
              AND state NOT IN ('open', 'done')), \
             (SELECT COUNT(*) FROM subscriptions), (",
    );
    statement.push(dialect.size()).push(")");
    statement
}

pub(crate) async fn quick_check(connection: &mut Connection) -> Result<Health, sqlx::Error> {
    let check = Statement::new(connection.dialect().quick_check());
    let finding = match connection.fetch(check).await {
        Ok(rows) => rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next()?.into_text())
            .unwrap_or_default(),
        // Damage in the schema itself stops the check.
        Err(problem) if is_damage(&problem) => match problem {
            sqlx::Error::Database(error) => error.message().to_owned(),
            other => other.to_string(),
        },
        Err(problem) => return Err(problem),
    };
    if finding == "ok" {
        Ok(Health::Intact)
    } else {
        Ok(Health::Damaged(finding.replace('\n', " ")))
    }
}

fn is_damage(problem: &sqlx::Error) -> bool {
    matches!(fault(problem), Fault::Damaged | Fault::NotADatabase)
}

pub(crate) async fn backup(
    connection: &mut Connection,
    directory: &Path,
    now: DateTime<Utc>,
    keep: usize,
) -> Result<PathBuf, BackupError> {
    let unusable = |source| BackupError::Directory {
        path: directory.to_owned(),
        source,
    };
    std::fs::create_dir_all(directory).map_err(unusable)?;
    let name = format!("ropewalk-{}.db", now.format("%Y%m%dT%H%M%S%3fZ"));
    let path = directory.join(name);
    // Written under another name first: a backup that is there is whole.
    let partial = path.with_extension("partial");
    if partial.exists() {
        std::fs::remove_file(&partial).map_err(unusable)?;
    }
    let mut statement = Statement::new("VACUUM INTO ");
    statement.bind(partial.to_string_lossy().as_ref());
    connection.execute(statement).await?;
    std::fs::File::open(&partial)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&partial, &path))
        .map_err(unusable)?;
    for old in backups(directory).into_iter().skip(keep.max(1)) {
        std::fs::remove_file(old).map_err(unusable)?;
    }
    Ok(path)
}

/// Lists the backups in `directory`, the newest first.
pub(crate) fn backups(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ropewalk-") && name.ends_with(".db")
        })
        .collect();
    found.sort_unstable_by(|left, right| right.cmp(left));
    found
}
