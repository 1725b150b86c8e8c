//! Opens a database file: make or find it, check it, back it up before its tables are changed.

use std::fs::File;
use std::path::{Path, PathBuf};

use ropewalk_runtime::Clock;
use ropewalk_schemas::advice::Words;
use sqlx::migrate::{MigrateError, Migrator};
use tracing::{error, info};

use super::{Tables, change_tables, newer, start, tables};
use crate::command::Command;
use crate::database::dialect::{Dialect, Statement};
use crate::database::{Connection, Database, Fault, fault, witness};
use crate::error::OpenError;
use crate::store::Store;
use crate::store::maintenance::{Health, backup, backups, quick_check};

/// Up to this size the integrity check takes no noticeable time and runs before anything else.
const INLINE_CHECK_BYTES: u64 = 64 * 1024 * 1024;

/// So many bytes are kept beside an open database at least: one piece of the memory that its processes share, and more.
const ROOM_BYTES: usize = 64 * 1024;

/// How many backups stay.
const BACKUPS_KEPT: usize = 3;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// Opens the database file at `path`; makes it if it is not there.
pub(super) async fn open(path: &Path, clock: Clock) -> Result<Store, OpenError> {
    let (existed, _opening) = prepare_file(path.to_owned()).await?;
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
    refuse_older(&mut connection, path).await?;
    let store = start(database, connection, None, clock)
        .await
        .map_err(|source| refused(path, source))?;
    if beside {
        store.check_beside(path.to_owned());
    }
    Ok(store)
}

impl Store {
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
                    error!("{}", Words::of(&problem));
                    if let Some(commands) = commands.upgrade() {
                        let command = Command::Damaged(finding);
                        // A writer that is gone writes nothing more anyway.
                        commands.send(command).await.unwrap_or_default();
                    }
                }
                Err(problem) => error!("cannot check the database: {}", Words::of(&problem)),
            }
        };
        self.tasks.spawn("store-check", checker);
    }
}

/// Makes the directory, refuses what is no file, and holds off other processes that open the same file.
async fn prepare_file(path: PathBuf) -> Result<(bool, File), OpenError> {
    let for_panic = path.clone();
    let work = move || {
        let unreachable = |source| {
            if is_want_of_room(&source) {
                return OpenError::NoSpace;
            }
            OpenError::Unreachable {
                path: path.clone(),
                source,
            }
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
    if let Some(backup) = newest {
        return Err(OpenError::Emptied {
            path: path.to_owned(),
            backup,
        });
    }
    if witness::seen(path) > 0 {
        return Err(OpenError::Lost {
            path: path.to_owned(),
            mark: witness::mark_of(path),
        });
    }
    Ok(())
}

/// Refuses what ends before the database that was here: what came after it would be done and told once more.
async fn refuse_older(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let seen = witness::seen(path);
    let last = Statement::new(Dialect::Sqlite.last_sequence());
    let rows = connection.fetch(last).await;
    let rows = rows.map_err(|source| refused(path, source))?;
    let found = rows.first().and_then(|row| row.first()?.as_integer());
    match found.unwrap_or_default() {
        found if found < seen => Err(OpenError::Older {
            path: path.to_owned(),
            found,
            seen,
            mark: witness::mark_of(path),
        }),
        _ => Ok(()),
    }
}

/// Brings the tables up to date; a backup comes first when there is something to lose.
/// Makes the tables of this version in a database file that has none.
pub(in crate::store) async fn make_tables(connection: &mut Connection) -> Result<(), MigrateError> {
    change_tables(connection, &MIGRATIONS).await
}

async fn migrate(connection: &mut Connection, path: &Path, clock: &Clock) -> Result<(), OpenError> {
    let tables = tables(connection, &MIGRATIONS)
        .await
        .map_err(|source| refused(path, source))?;
    match tables {
        Tables::Newer { found, known } => return Err(newer(path.display(), found, known)),
        Tables::Current => return Ok(()),
        Tables::Older => {
            let directory = backup_directory(path);
            let kept = backup(connection, &directory, clock.now(), BACKUPS_KEPT).await?;
            info!("backed up the database to `{}`", kept.display());
        }
        Tables::Missing => {}
    }
    change_tables(connection, &MIGRATIONS)
        .await
        .map_err(|problem| match problem {
            MigrateError::Execute(source) => refused(path, source),
            source => OpenError::Migration {
                database: path.display().to_string(),
                source,
            },
        })
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

/// Returns whether the disk of a file has no room for what SQLite keeps beside it.
fn is_full(path: &Path) -> bool {
    let mut name = path.to_owned().into_os_string();
    name.push(".room");
    let tried = std::fs::write(&name, vec![0; ROOM_BYTES]);
    std::fs::remove_file(&name).unwrap_or_default();
    tried.is_err_and(|problem| is_want_of_room(&problem))
}

fn is_want_of_room(problem: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(problem.kind(), StorageFull | QuotaExceeded)
}

/// Says in words of this crate why the database refused.
fn refused(path: &Path, source: sqlx::Error) -> OpenError {
    match fault(&source) {
        Fault::NotADatabase => OpenError::NotADatabase(path.to_owned()),
        Fault::ReadOnly => OpenError::ReadOnly(path.to_owned()),
        Fault::Damaged => damaged(path, source.to_string()),
        Fault::Busy => OpenError::Busy(path.to_owned()),
        Fault::NoSpace => OpenError::NoSpace,
        Fault::Unwritten if is_full(path) => OpenError::NoSpace,
        _ => OpenError::Storage {
            database: path.display().to_string(),
            source,
        },
    }
}
