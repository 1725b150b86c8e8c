//! Lets one process at a time consume from a state directory, or several that share the deliveries; others may read and
//! write beside them.

mod session;

use std::fs::{File, OpenOptions, TryLockError};
use std::future::Future;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use ropewalk_runtime::token;
use ropewalk_schemas::advice::Advice;
use tokio::sync::watch;

use crate::database::Database;
use crate::database::location::{Location, Server};
use crate::error::LocationError;
use session::LockOutcome;
pub(crate) use session::{Right, Session};

/// Whether others may consume at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance {
    /// Nobody else may.
    Alone,
    /// Those may who share, too; all of them have one state directory.
    Sharing,
}

/// The file whose lock is the right to consume.
const LOCK: &str = "instance.lock";
/// What the lock file says where processes share it.
const SHARED: &str = "shared";
/// The file by which processes on one state directory know each other on a server, wherever they run.
const MARK: &str = "instance.mark";

/// The right to consume, held until it is dropped or the process ends, however it ends.
///
/// On a server the lock lasts as long as the session that took it, and a server that is restarted forgets it. Therefore
/// [`Store::open_holding`](crate::Store::open_holding) makes that session the one in which the process commits, and
/// each session that follows it takes the lock before anything is committed there: between the end of one session and
/// the next this process commits nothing. What it does meanwhile outside the database, such as a command of a build or
/// a push, goes on; what becomes of that is fenced when it is to be landed. If somebody else was faster,
/// this process can never commit again, and [`InstanceLock::lost`] says so: at once where the server closes the
/// connection, otherwise with the next commit.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
    /// Where the database is on a server, which other machines reach too.
    server: Option<OnServer>,
}

#[derive(Debug)]
struct OnServer {
    database: String,
    /// Until a store takes it over.
    session: Option<Session>,
    taken_by: watch::Receiver<Option<String>>,
}

/// Says why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum InstanceLockError {
    /// Another process holds it.
    #[error("another `ropewalk` ({}) already runs on this state directory", process(.pid.as_ref()))]
    Held {
        /// That process, where it said so.
        pid: Option<u32>,
    },
    /// Processes share it, and this one would not.
    #[error("`ropewalk agent` runs on this state directory")]
    Shared,
    /// Processes share the database that have another state directory.
    #[error("`ropewalk agent` ({holder}) shares `{database}` with another state directory")]
    Apart {
        /// The server.
        database: String,
        /// What the server says of one of them.
        holder: String,
    },
    /// A process on this or another machine consumes from the same database.
    #[error("another `ropewalk` ({holder}) already consumes from `{database}`")]
    Taken {
        /// The server.
        database: String,
        /// What the server says of that process.
        holder: String,
    },
    /// Another process has taken the lock of the database while this one had no session there.
    #[error("another `ropewalk` ({holder}) has taken over `{database}` while it was out of reach")]
    Lost {
        /// The server.
        database: String,
        /// What the server says of that process.
        holder: String,
    },
    /// The address of the server is not one.
    #[error("{0}")]
    Location(#[from] LocationError),
    /// The server did not answer.
    #[error("cannot take the lock of `{database}`: {source}")]
    Server {
        /// The server.
        database: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The lock file cannot be used.
    #[error("cannot use the lock file `{path}`: {source}")]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Advice for InstanceLockError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Held { pid: Some(pid) } => {
                return Some(format!(
                    "stop it first, with Ctrl-C where it runs or with `kill {pid}` there"
                ));
            }
            Self::Held { pid: None } | Self::Taken { .. } => "stop it first",
            Self::Shared => "stop its processes first",
            Self::Apart { .. } => {
                "let all have one state directory, as `project.state` names it, or stop those first"
            }
            Self::Lost { .. } => "stop that one before this one is started again",
            Self::Location(error) => return error.next(),
            Self::Server { .. } | Self::Unreachable { .. } => return None,
        };
        Some(next.to_owned())
    }
}

fn process(pid: Option<&u32>) -> String {
    pid.map_or_else(
        || "process unknown".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl InstanceLock {
    /// Takes the lock of `state`, or says who holds it; never waits.
    pub fn acquire(state: &Path) -> Result<Self, InstanceLockError> {
        Ok(Self {
            _file: lock_file(state, Instance::Alone)?,
            server: None,
        })
    }

    /// Takes the lock of `state` and, where the database lies on a server, that of the database; never waits.
    pub async fn acquire_for(
        location: &Location,
        state: &Path,
        instance: Instance,
    ) -> Result<Self, InstanceLockError> {
        let file = lock_file(state, instance)?;
        let server = match location {
            Location::Sqlite(_) => None,
            Location::Postgres(server) => {
                let right = match instance {
                    Instance::Alone => Right::alone(),
                    Instance::Sharing => Right::sharing(mark_of(state)?),
                };
                Some(take(server, right).await?)
            }
        };
        Ok(Self {
            _file: file,
            server,
        })
    }

    /// Returns the process that alone consumes from `state`, where one does and said so; leaves its file as it is.
    pub fn holder(state: &Path) -> Option<u32> {
        let mut file = File::open(state.join(LOCK)).ok()?;
        // Nobody who looks, or shares, is kept out by whoever looks.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) => return None,
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// Waits until another process has taken the lock; for ever where none can.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let taken_by = self.server.as_ref().map(|server| server.taken_by.clone());
        async move {
            if let Some(mut taken_by) = taken_by
                && taken_by.wait_for(Option::is_some).await.is_ok()
            {
                return;
            }
            std::future::pending::<()>().await;
        }
    }

    /// Says that another process has taken the lock, if one has.
    pub fn taken(&self) -> Option<InstanceLockError> {
        let server = self.server.as_ref()?;
        let holder = server.taken_by.borrow().clone()?;
        Some(InstanceLockError::Lost {
            database: server.database.clone(),
            holder,
        })
    }

    /// Hands over the session that holds the lock of the database.
    pub(crate) fn hand_over(&mut self) -> Option<Session> {
        self.server.as_mut()?.session.take()
    }
}

async fn take(server: &Server, mut right: Right) -> Result<OnServer, InstanceLockError> {
    let failed = |source| InstanceLockError::Server {
        database: server.to_string(),
        source,
    };
    let database = Database::postgres(server)?;
    let mut connection = database.connect(false).await.map_err(failed)?;
    let refused = |holder| InstanceLockError::Taken {
        database: server.to_string(),
        holder,
    };
    match right.take(&mut connection).await.map_err(failed)? {
        LockOutcome::Taken => Ok(OnServer {
            database: server.to_string(),
            taken_by: right.watch(),
            session: Some(Session { connection, right }),
        }),
        LockOutcome::Apart(other) => Err(InstanceLockError::Apart {
            database: server.to_string(),
            holder: other.name,
        }),
        LockOutcome::Held(holder) => Err(refused(holder.name)),
        LockOutcome::LetGo => Err(refused(process(None))),
    }
}

/// Returns what a state directory is known by, which is made where it is not there.
fn mark_of(state: &Path) -> Result<String, InstanceLockError> {
    let path = state.join(MARK);
    kept_mark(&path).map_err(|source| InstanceLockError::Unreachable { path, source })
}

/// Reads the mark in a file, or writes one where it holds none. Two processes may be the first: one keeps the other out for
/// that moment, and the mark is that of the faster one.
fn kept_mark(path: &Path) -> io::Result<String> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.lock()?;
    let mut mark = String::new();
    file.read_to_string(&mut mark)?;
    // A machine that went down may have left the file alone, without what was written to it, and every such file is alike.
    let is_nothing = |letter: char| letter == '\0' || letter.is_whitespace();
    if mark.chars().all(is_nothing) {
        mark = token::fresh().chars().take(32).collect();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(mark.as_bytes())?;
        file.sync_all()?;
    }
    Ok(mark)
}

fn lock_file(state: &Path, instance: Instance) -> Result<File, InstanceLockError> {
    let path = state.join(LOCK);
    let unreachable = |source| InstanceLockError::Unreachable {
        path: path.clone(),
        source,
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(unreachable)?;
    let locked = match instance {
        Instance::Alone => file.try_lock(),
        Instance::Sharing => file.try_lock_shared(),
    };
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // What cannot be read names nobody.
            file.read_to_string(&mut text).unwrap_or_default();
            return Err(match text.trim() {
                SHARED => InstanceLockError::Shared,
                pid => InstanceLockError::Held {
                    pid: pid.parse().ok(),
                },
            });
        }
        Err(TryLockError::Error(source)) => return Err(unreachable(source)),
    }
    let holder = match instance {
        Instance::Alone => std::process::id().to_string(),
        // All who share write the same.
        Instance::Sharing => SHARED.to_owned(),
    };
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{holder}"))
        .map_err(unreachable)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_one_holds_the_lock_and_it_is_free_once_dropped() {
        let state = tempfile::tempdir().unwrap();
        let first = InstanceLock::acquire(state.path()).unwrap();
        let refused = InstanceLock::acquire(state.path()).unwrap_err();
        assert!(matches!(
            refused,
            InstanceLockError::Held { pid: Some(pid) } if pid == std::process::id()
        ));
        drop(first);
        InstanceLock::acquire(state.path()).unwrap();
    }

    #[test]
    fn who_looks_for_the_holder_takes_and_writes_nothing() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join(LOCK);
        assert_eq!(InstanceLock::holder(state.path()), None);
        assert!(!file.exists());
        let alone = InstanceLock::acquire(state.path()).unwrap();
        let own = std::process::id();
        assert_eq!(InstanceLock::holder(state.path()), Some(own));
        drop(alone);
        // What is left of one that ended names nobody.
        fs::write(&file, "1\n").unwrap();
        assert_eq!(InstanceLock::holder(state.path()), None);
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        let sharing = lock_file(state.path(), Instance::Sharing).unwrap();
        assert_eq!(InstanceLock::holder(state.path()), None);
        drop(sharing);
        InstanceLock::acquire(state.path()).unwrap();
    }

    #[test]
    fn a_state_directory_has_one_mark_and_another_one_has_another() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mark = mark_of(one.path()).unwrap();
        assert_eq!(mark_of(one.path()).unwrap(), mark);
        assert_ne!(mark_of(other.path()).unwrap(), mark);
        let files = fs::read_dir(one.path()).unwrap();
        assert_eq!(files.count(), 1, "nothing else is left");
        // What a machine that went down left is no mark: two such directories are not one.
        for left in ["", "\0\0"] {
            let marks = [&one, &other].map(|state| {
                fs::write(state.path().join(MARK), left).unwrap();
                mark_of(state.path()).unwrap()
            });
            assert_ne!(marks[0], marks[1]);
            assert_eq!(mark_of(one.path()).unwrap(), marks[0]);
        }
    }

    #[test]
    fn those_who_share_keep_out_who_would_be_alone_and_the_other_way_round() {
        let state = tempfile::tempdir().unwrap();
        let sharing = [(); 2].map(|()| lock_file(state.path(), Instance::Sharing).unwrap());
        let refused = InstanceLock::acquire(state.path()).unwrap_err();
        assert!(matches!(refused, InstanceLockError::Shared), "{refused}");
        drop(sharing);
        let alone = InstanceLock::acquire(state.path()).unwrap();
        let refused = lock_file(state.path(), Instance::Sharing).unwrap_err();
        assert!(
            matches!(refused, InstanceLockError::Held { pid: Some(_) }),
            "{refused}"
        );
        drop(alone);
    }
}
