//! Opens a store: make or find the file, check it, back it up, bring it up to date, start the writer.

use std::fs::File;
use std::path::{Path, PathBuf};

use ropewalk_runtime::{Clock, Shutdown, Supervisor};
use sqlx::migrate::{MigrateError, Migrator};
use tracing::{error, info};

use crate::database::{Connection, Database};
use crate::dialect::Statement;
use crate::error::OpenError;
use crate::location::Location;
use crate::maintenance::{Health, backup, backups, is_damage, primary, quick_check};
use crate::store::Store;
use crate::writer;

/// Up to this size the integrity check takes no noticeable time and runs before anything else.
const INLINE_CHECK_BYTES: u64 = 64 * 1024 * 1024;

/// How many backups stay.
const BACKUPS_KEPT: usize = 3;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

impl Store {
    /// Opens the database at `location`; makes it if it is not there.
    pub async fn open(location: &Location, clock: Clock) -> Result<Self, OpenError> {
        let Location::Sqlite(path) = location;
        let (existed, _opening) = prepare_file(path.clone()).await?;
        let database = Database::sqlite(path);
        let mut connection = database
            .connect(true)
            .await
            .map_err(|source| refused(path, source))?;
        let size = std::fs::metadata(path).map_or(0, |file| file.len());
        let beside = existed && size > INLINE_CHECK_BYTES;
        if existed && !beside {
            let health = quick_check(&mut connection)
                .await
                .map_err(|source| refused(path, source))?;
            if let Health::Damaged(finding) = health {
                return Err(damaged(path, finding));
            }
        }
        migrate(&mut connection, path, &clock).await?;
        let tasks = Supervisor::new(Shutdown::new());
        let store = writer::start(database, connection, clock, tasks)
            .await
            .map_err(|source| refused(path, source))?;
        if beside {
            store.check_beside(path.clone());
        }
        Ok(store)
    }

    /// Checks a large database while it already serves; damage stops all writing.
    fn check_beside(&self, path: PathBuf) {
        let store = self.clone();
        // Only the commands keep the writer alive; a check must not.
        let commands = store.commands.downgrade();
        let checker = async move {
            let outcome = store.check().await;
            drop(store);
            match outcome {
                Ok(Health::Intact) => info!("checked the database `{}`", path.display()),
                Ok(Health::Damaged(finding)) => {
                    let problem = damaged(&path, finding.clone());
                    error!("{problem}");
                    if let Some(commands) = commands.upgrade() {
                        let command = writer::Command::Damaged(finding);
                        // A writer that is gone writes nothing more anyway.
                        commands.send(command).await.unwrap_or_default();
                    }
                }
                Err(problem) => error!("cannot check the database: {problem}"),
            }
        };
        self.tasks.spawn("store-check", checker);
    }
}

/// Makes the directory, refuses what is no file, and holds off other processes that open the same file.
async fn prepare_file(path: PathBuf) -> Result<(bool, File), OpenError> {
    let for_panic = path.clone();
    let work = move || {
        let unreachable = |source| OpenError::Unreachable {
            path: path.clone(),
            source,
        };
        if path.exists() && !path.is_file() {
            return Err(OpenError::NotAFile(path));
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(unreachable)?;
        }
        let mut name = path.clone().into_os_string();
        name.push(".opening");
        let opening = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(name)
            .map_err(unreachable)?;
        // Two processes must not make the tables at once; the lock ends with this function's caller.
        opening.lock().map_err(unreachable)?;
        refuse_emptied(&path)?;
        Ok((path.exists(), opening))
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|problem| {
            Err(OpenError::Unreachable {
                path: for_panic,
                source: std::io::Error::other(problem),
            })
        })
}

/// Refuses to make a new database where one was lost: its backups are still there.
fn refuse_emptied(path: &Path) -> Result<(), OpenError> {
    if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    let newest = backups(&backup_directory(path)).into_iter().next();
    newest.map_or(Ok(()), |backup| {
        Err(OpenError::Emptied {
            path: path.to_owned(),
            backup,
        })
    })
}

/// Brings the tables up to date; a backup comes first when there is something to lose.
async fn migrate(connection: &mut Connection, path: &Path, clock: &Clock) -> Result<(), OpenError> {
    let found = applied_version(connection)
        .await
        .map_err(|source| refused(path, source))?;
    let known = MIGRATIONS
        .iter()
        .map(|step| step.version)
        .max()
        .unwrap_or(0);
    match found {
        Some(found) if found > known => {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
                known,
            });
        }
        Some(found) if found == known => return Ok(()),
        Some(_) => {
            let kept = backup(
                connection,
                &backup_directory(path),
                clock.now(),
                BACKUPS_KEPT,
            )
            .await?;
            info!("backed up the database to `{}`", kept.display());
        }
        None => {}
    }
    ropewalk_runtime::failpoint!("store.migrate.before");
    let Connection::Sqlite(raw) = connection;
    let migrated = MIGRATIONS.run(raw).await.map_err(|source| match source {
        MigrateError::Execute(source) => refused(path, source),
        source => OpenError::Migration {
            path: path.to_owned(),
            source,
        },
    });
    ropewalk_runtime::failpoint!("store.migrate.after");
    migrated
}

/// Returns the version of the tables; `None` when there are none yet.
async fn applied_version(connection: &mut Connection) -> Result<Option<i64>, sqlx::Error> {
    let exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'";
    if connection.fetch(Statement::new(exists)).await?.is_empty() {
        return Ok(None);
    }
    let newest = "SELECT MAX(version) FROM _sqlx_migrations";
    let rows = connection.fetch(Statement::new(newest)).await?;
    Ok(rows.first().and_then(|row| row.first()?.as_integer()))
}

fn backup_directory(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).join("backups")
}

fn damaged(path: &Path, finding: String) -> OpenError {
    OpenError::Damaged {
        path: path.to_owned(),
        finding,
        backup: backups(&backup_directory(path)).into_iter().next(),
    }
}

/// Says in words of this crate why the database refused.
fn refused(path: &Path, source: sqlx::Error) -> OpenError {
    let code = match &source {
        sqlx::Error::Database(error) => error.code().map(std::borrow::Cow::into_owned),
        _ => None,
    };
    match primary(code.as_deref()) {
        Some(26) => OpenError::NotADatabase(path.to_owned()),
        Some(8 | 14) => OpenError::ReadOnly(path.to_owned()),
        _ if is_damage(code.as_deref()) => damaged(path, source.to_string()),
        _ => OpenError::Storage {
            path: path.to_owned(),
            source,
        },
    }
}
