//! Says what can go wrong, per operation that a caller distinguishes.

mod contention;

use std::path::PathBuf;
use std::sync::Arc;

use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_schemas::lease::Holder;
use ropewalk_schemas::{ComponentName, ContentHash, EventId, RepoPath};

use crate::database::{Fault, fault};

pub use contention::{CONFLICTS, CommitFailure, unless_conflict};

/// Says why a change set was not committed; nothing of it was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A row is not as the change set expects it: load again and decide again.
    #[error("row `{key}` of `{table}` was changed by somebody else")]
    Conflict {
        /// The table.
        table: &'static str,
        /// The key of the row.
        key: String,
    },
    /// Somebody else was faster, however often the change was decided anew.
    #[error("the records of `{0}` keep changing")]
    Contended(String),
    /// The change set writes one row twice from the same version.
    #[error("the change set writes row `{key}` of `{table}` twice")]
    Twice {
        /// The table.
        table: &'static str,
        /// The key of the row.
        key: String,
    },
    /// A lease is granted to another attempt.
    #[error("`{path}` is locked by task `{}` of build `{}`", .holder.task, .holder.build)]
    Held {
        /// The file.
        path: RepoPath,
        /// Who holds it.
        holder: Box<Holder>,
    },
    /// A lease is not granted with this token any more.
    #[error("the lock on `{path}` is no longer held with token `{token}`")]
    Fenced {
        /// The file.
        path: RepoPath,
        /// The stale token.
        token: i64,
    },
    /// A delivery is not open any more: somebody else has handled it.
    #[error("delivery `{sequence}` to `{subscriber}` is not open")]
    Closed {
        /// The event's sequence.
        sequence: i64,
        /// The subscriber.
        subscriber: ComponentName,
    },
    /// A delivery is not among the dead letters.
    #[error("delivery `{sequence}` to `{subscriber}` is `{state}`")]
    NotDead {
        /// The event's sequence.
        sequence: i64,
        /// The subscriber.
        subscriber: ComponentName,
        /// What it is.
        state: String,
    },
    /// A body is larger than the store takes.
    #[error("{what} has {size_bytes} bytes")]
    Oversized {
        /// What is too large.
        what: String,
        /// How large it is.
        size_bytes: usize,
        /// How large it may be.
        limit_bytes: usize,
    },
    /// So much waits to be handled that nothing new is taken in.
    #[error(
        "{open} or more deliveries wait to be handled, and from {limit} on nothing new is taken in"
    )]
    Backlog {
        /// How many wait.
        open: i64,
        /// How many may wait.
        limit: i64,
    },
    /// The data of a large event could not be kept.
    #[error("the data of an event cannot be kept in `{path}`: {reason}")]
    Blob {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Too many events followed each other without a person, a timer or a claim between them.
    #[error("event `{event_type}` would be hop {hop} of its chain; the chain ends here")]
    HopLimit {
        /// The event type.
        event_type: String,
        /// How far the chain is.
        hop: u32,
    },
    /// A record cannot be written as JSON.
    #[error("row `{key}` of `{table}` cannot be written: {reason}")]
    Unwritable {
        /// The table.
        table: &'static str,
        /// The key of the row.
        key: String,
        /// Why.
        reason: String,
    },
    /// A subscription takes nothing, or its pattern is not one.
    #[error("subscription `{0}` has no pattern")]
    NoPattern(ComponentName),
    /// The disk is full.
    #[error("the disk of the database is full")]
    NoSpace,
    /// The database may not be written.
    #[error("the database is read-only")]
    ReadOnly,
    /// The server cannot be reached; when the connection broke in the middle of a commit, the change set may be
    /// written all the same.
    #[error("the database cannot be reached ({0})")]
    Unreachable(String),
    /// Another process has taken the right to consume while the server was out of reach; this one has to stop. When
    /// the connection broke in the middle of a commit, the change set may be written all the same.
    #[error("another `ropewalk` ({0}) has taken over the database")]
    Superseded(String),
    /// Another process held the database for too long.
    #[error("the database is busy with another process")]
    Busy,
    /// The database is damaged.
    #[error("the database is damaged ({0})")]
    Damaged(String),
    /// The database file is not where it was opened.
    #[error("the database `{}` was removed or replaced while it was in use", .0.display())]
    Gone(PathBuf),
    /// The store is closing.
    #[error("the store is closing")]
    Closing,
    /// The database failed.
    #[error("the database failed: {0}")]
    Storage(#[source] Arc<sqlx::Error>),
}

impl CommitError {
    /// Returns whether somebody else changed what the change set rests on: whoever looks again decides on what is there now.
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Fenced { .. })
    }

    /// Returns whether the change set is refused for what it holds: no other try of it is taken.
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Oversized { .. } | Self::HopLimit { .. } | Self::Unwritable { .. }
        )
    }
}

impl Advice for CommitError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Conflict { .. } => "load it again",
            Self::Contended(_) | Self::Busy => "try again",
            Self::Twice { .. } => "merge the two writes",
            Self::Fenced { .. } => "acquire it again",
            Self::NotDead { .. } => "only dead, parked or discarded ones are replayed",
            Self::Oversized { limit_bytes, .. } => {
                return Some(format!(
                    "{limit_bytes} is the most, store the rest elsewhere"
                ));
            }
            Self::Backlog { .. } => {
                "try again when some are done, or see `dead-letter list` and `wait list` for what holds them up"
            }
            Self::Blob { .. } => "see that its directory can be written",
            Self::NoPattern(_) => "name at least one event type",
            Self::NoSpace => "make room and try again",
            Self::ReadOnly => "check the permissions of its file and directory",
            Self::Unreachable(_) => "see that its server runs, load again and try again",
            Self::Superseded(_) => "this one has to stop",
            Self::Damaged(_) => "stop, and restore the newest backup",
            Self::Gone(_) => "stop, put it or its newest backup in its place and start again",
            _ => return None,
        };
        Some(next.to_owned())
    }
}

/// Says why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A query names a column that its table does not have.
    #[error("table `{table}` has no column `{column}`")]
    UnknownColumn {
        /// The table.
        table: &'static str,
        /// The column asked for.
        column: String,
        /// The columns there are.
        known: String,
    },
    /// A stored row does not fit its type.
    #[error("row `{key}` of `{table}` cannot be read: {reason}")]
    Malformed {
        /// The table.
        table: &'static str,
        /// The key of the row.
        key: String,
        /// What does not fit.
        reason: String,
    },
    /// The data of a large event is gone, or is not what it was.
    #[error("the data of event `{event}` cannot be read from `{hash}`: {reason}")]
    Blob {
        /// The event.
        event: EventId,
        /// The hash that names the data.
        hash: ContentHash,
        /// Why.
        reason: String,
    },
    /// The database failed.
    #[error("{}", told(.0))]
    Storage(#[from] sqlx::Error),
}

impl Advice for ReadError {
    fn next(&self) -> Option<String> {
        match self {
            Self::UnknownColumn { known, .. } => Some(format!("it has {known}")),
            Self::Storage(problem) if is_busy(problem) => {
                Some("end what holds it, or try again".to_owned())
            }
            _ => None,
        }
    }
}

/// Says why what was read could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum CommitOrRead {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Advice for CommitOrRead {
    fn next(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl CommitFailure for CommitOrRead {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            Self::Read(_) => None,
        }
    }
}

fn is_busy(problem: &sqlx::Error) -> bool {
    matches!(fault(problem), Fault::Busy)
}

/// Says what keeps the database from being read, without the words of its driver where people can do something.
fn told(problem: &sqlx::Error) -> String {
    if is_busy(problem) {
        "the database is held by another process".to_owned()
    } else {
        format!("the database failed: {problem}")
    }
}

/// Says why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The location is not one that this version supports.
    #[error("{0}")]
    Location(#[from] LocationError),
    /// The path names a directory or another thing that is no file.
    #[error("`{0}` is not a file")]
    NotAFile(PathBuf),
    /// The directory or file cannot be made or read.
    #[error("cannot open the database `{path}`: {source}")]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a database.
    #[error("`{0}` is not a database")]
    NotADatabase(PathBuf),
    /// The disk is full.
    #[error("the disk of the database is full")]
    NoSpace,
    /// The database may not be written.
    #[error("the database `{0}` is read-only")]
    ReadOnly(PathBuf),
    /// Another process held the database for too long.
    #[error("the database `{0}` is held by another process")]
    Busy(PathBuf),
    /// A newer version of the program wrote it.
    #[error("the database `{database}` has version {found}, newer than {known}")]
    Newer {
        /// The file or server.
        database: String,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The database is damaged.
    #[error("the database `{path}` is damaged ({finding})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        finding: String,
        /// The newest backup.
        backup: Option<PathBuf>,
    },
    /// There is no content where there was some: backups lie beside it.
    #[error("the database `{path}` is missing or empty, but it has backups")]
    Emptied {
        /// The file.
        path: PathBuf,
        /// The newest backup.
        backup: PathBuf,
    },
    /// There is no content where there was some, and no backup of it.
    #[error("the database `{path}` is missing or empty, but it was in use before")]
    Lost {
        /// The file.
        path: PathBuf,
        /// What says that it was in use.
        mark: PathBuf,
    },
    /// What is there ends before what was there already.
    #[error(
        "the database `{path}` is older than the one that was in use: it ends at event {found}, and event {seen} was stored"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its last event.
        found: i64,
        /// The last event that was stored.
        seen: i64,
        /// What says so.
        mark: PathBuf,
    },
    /// The tables could not be brought up to date.
    #[error("cannot bring the database `{database}` up to date: {source}")]
    Migration {
        /// The file or server.
        database: String,
        /// Why.
        source: sqlx::migrate::MigrateError,
    },
    /// The server lacks something.
    #[error("the database `{database}` cannot be used: {}", .reason.message)]
    Unfit {
        /// The server.
        database: String,
        /// What it lacks, and how to mend that.
        reason: Words,
    },
    /// No backup could be made before the tables were to be changed.
    #[error("cannot back up the database before bringing it up to date: {0}")]
    Backup(#[from] BackupError),
    /// The database failed.
    #[error("cannot open the database `{database}`: {source}")]
    Storage {
        /// The file or server.
        database: String,
        /// Why.
        source: sqlx::Error,
    },
}

impl Advice for OpenError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Location(error) => return error.next(),
            Self::NotAFile(_) => "name a file for the database",
            Self::NotADatabase(_) => "move it away or name another file",
            Self::NoSpace => "make room and try again",
            Self::ReadOnly(_) => "check the permissions of its file and directory",
            Self::Busy(_) => "end what holds it, or try again",
            Self::Newer { .. } => "use a newer `ropewalk`",
            Self::Damaged { backup: None, .. } => "there is no backup of it",
            Self::Damaged {
                backup: Some(backup),
                ..
            } => {
                return Some(format!(
                    "put the backup `{}` in its place",
                    backup.display()
                ));
            }
            Self::Emptied { backup, .. } => {
                return Some(format!(
                    "put the backup `{}` in its place, or move the backups away to begin anew",
                    backup.display()
                ));
            }
            Self::Lost { mark, .. } => {
                return Some(format!(
                    "put it back in its place, or remove `{}` to begin anew",
                    mark.display()
                ));
            }
            Self::Older { mark, .. } => {
                return Some(format!(
                    "put the newer one in its place, or remove `{}` to go on with this one and lose what came after it",
                    mark.display()
                ));
            }
            Self::Unfit { reason, .. } => return reason.next.clone(),
            _ => return None,
        };
        Some(next.to_owned())
    }
}

/// Says why a backup could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The directory cannot be used.
    #[error("cannot use the backup directory `{path}`: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The tables of a copy could not be made.
    #[error("cannot make the tables of the copy: {0}")]
    Tables(#[from] sqlx::migrate::MigrateError),
    /// A server is backed up by its own tools.
    #[error("a PostgreSQL database is backed up with `pg_dump`, or by whoever runs its server")]
    Elsewhere,
    /// The database failed.
    #[error("cannot write the backup: {0}")]
    Storage(#[from] sqlx::Error),
}

/// Says why a location cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The address of a server is not one; the address itself may hold a password and is not repeated.
    #[error("the address of the PostgreSQL server cannot be read ({0})")]
    Unreadable(String),
    /// The text names no kind of store.
    #[error("`{0}` names no store")]
    Unknown(String),
}

impl Advice for LocationError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Unreadable(_) => "write `postgres://USER@HOST/DATABASE`",
            Self::Unknown(_) => "write `sqlite`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`",
        };
        Some(next.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_no_advice() {
        let oversized = CommitError::Oversized {
            what: "`a; b`".to_owned(),
            size_bytes: 9,
            limit_bytes: 8,
        };
        let next = "8 is the most, store the rest elsewhere";
        assert_eq!(Words::of(&oversized), ("`a; b` has 9 bytes", next).into());
        let unknown = LocationError::Unknown("a; b".to_owned());
        assert_eq!(
            Words::of(&OpenError::from(unknown)),
            (
                "`a; b` names no store",
                "write `sqlite`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`"
            )
                .into()
        );
        let malformed = ReadError::Malformed {
            table: "tasks",
            key: "a; b".to_owned(),
            reason: "c; d".to_owned(),
        };
        let message = "row `a; b` of `tasks` cannot be read: c; d";
        assert_eq!(Words::of(&malformed), message.into());
    }

    #[test]
    fn a_damaged_database_says_whether_there_is_a_backup() {
        let next = |backup: Option<&str>| {
            let damaged = OpenError::Damaged {
                path: "d.db".into(),
                finding: "page 3; page 4".to_owned(),
                backup: backup.map(PathBuf::from),
            };
            let words = Words::of(&damaged);
            assert_eq!(
                words.message,
                "the database `d.db` is damaged (page 3; page 4)"
            );
            words.next
        };
        assert_eq!(next(None).as_deref(), Some("there is no backup of it"));
        let put = "put the backup `b.db` in its place";
        assert_eq!(next(Some("b.db")).as_deref(), Some(put));
    }
}
