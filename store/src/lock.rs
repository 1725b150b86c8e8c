//! Lets one process at a time consume from a state directory; others may read and write beside it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::database::{Connection, Database};
use crate::dialect::{Purpose, Statement, lock_name};
use crate::error::LocationError;
use crate::location::{Location, Server};
use crate::value::Value;

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
            _file: lock_file(state)?,
            _session: None,
        })
    }

    /// Takes the lock of `state` and, where the database lies on a server, that of the database; never waits.
    ///
    /// The lock of a database lasts as long as its connection: a server that is restarted forgets it.
    pub async fn acquire_for(location: &Location, state: &Path) -> Result<Self, InstanceLockError> {
        let file = lock_file(state)?;
        let session = match location {
            Location::Sqlite(_) => None,
            Location::Postgres(server) => Some(take(server).await?),
        };
        Ok(Self {
            _file: file,
            _session: session,
        })
    }
}

fn lock_file(state: &Path) -> Result<File, InstanceLockError> {
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
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file
                .read_to_string(&mut text)
                .ok()
                .and_then(|_| text.trim().parse().ok());
            return Err(InstanceLockError::Held { pid });
        }
        Err(TryLockError::Error(source)) => return Err(unreachable(source)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(unreachable)?;
    Ok(file)
}

async fn take(server: &Server) -> Result<Connection, InstanceLockError> {
    let failed = |source| InstanceLockError::Server {
        database: server.to_string(),
        source,
    };
    let database = Database::postgres(server)?;
    let mut session = database.connect(false).await.map_err(failed)?;
    let lock = lock_name(Purpose::Consume);
    let attempt = Statement::new(&format!("SELECT pg_try_advisory_lock({lock})"));
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
}
