//! Lets one process at a time consume from a state directory, or several that share the deliveries; others may read and
//! write beside them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::database::{Connection, Database};
use crate::dialect::{Purpose, Statement, lock_name};
use crate::error::LocationError;
use crate::location::{Location, Server};
use crate::value::Value;

/// Whether others may consume at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance {
    /// Nobody else may.
    Alone,
    /// Those may who share, too.
    Sharing,
}

/// What the lock file says where processes share it.
const SHARED: &str = "shared";

/// The right to consume, held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
    /// Where the database is on a server, which other machines reach too.
    _session: Option<Connection>,
}

/// Says why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum InstanceLockError {
    /// Another process holds it.
    #[error("another `ropewalk` ({}) already runs on this state directory; stop it first", process(.pid.as_ref()))]
    Held {
        /// That process, where it said so.
        pid: Option<u32>,
    },
    /// Processes share it, and this one would not.
    #[error("`ropewalk agent` runs on this state directory; stop its processes first")]
    Shared,
    /// A process on this or another machine consumes from the same database.
    #[error("another `ropewalk` ({holder}) already consumes from `{database}`; stop it first")]
    Taken {
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
            _session: None,
        })
    }

    /// Takes the lock of `state` and, where the database lies on a server, that of the database; never waits.
    ///
    /// The lock of a database lasts as long as its connection: a server that is restarted forgets it.
    pub async fn acquire_for(
        location: &Location,
        state: &Path,
        instance: Instance,
    ) -> Result<Self, InstanceLockError> {
        let file = lock_file(state, instance)?;
        let session = match location {
            Location::Sqlite(_) => None,
            Location::Postgres(server) => Some(take(server, instance).await?),
        };
        Ok(Self {
            _file: file,
            _session: session,
        })
    }
}

fn lock_file(state: &Path, instance: Instance) -> Result<File, InstanceLockError> {
    let path = state.join("instance.lock");
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

async fn take(server: &Server, instance: Instance) -> Result<Connection, InstanceLockError> {
    let failed = |source| InstanceLockError::Server {
        database: server.to_string(),
        source,
    };
    let database = Database::postgres(server)?;
    let mut session = database.connect(false).await.map_err(failed)?;
    let lock = lock_name(Purpose::Consume);
    let function = match instance {
        Instance::Alone => "pg_try_advisory_lock",
        Instance::Sharing => "pg_try_advisory_lock_shared",
    };
    let attempt = Statement::new(&format!("SELECT {function}({lock})"));
    let rows = session.fetch(attempt).await.map_err(failed)?;
    if rows.into_iter().flatten().next() == Some(Value::Integer(1)) {
        return Ok(session);
    }
    let holder = session.fetch(holder()).await.map_err(failed)?;
    let holder = holder.into_iter().flatten().next();
    Err(InstanceLockError::Taken {
        database: server.to_string(),
        holder: holder
            .and_then(Value::into_text)
            .unwrap_or_else(|| process(None)),
    })
}

/// Returns a select of who holds the lock.
fn holder() -> Statement {
    // A lock with two numbers is listed with both of them taken for positive.
    Statement::new(&format!(
        "SELECT application_name || COALESCE(' on ' || host(client_addr), '') \
         FROM pg_locks JOIN pg_stat_activity USING (pid) \
         WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
         AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND classid::bigint = {} AND objid::bigint = hashtext(current_schema())::bigint & 4294967295",
        Purpose::Consume as i32
    ))
}

#[cfg(test)]
mod tests {
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
