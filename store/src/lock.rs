//! Lets one process at a time consume from a state directory; others may read and write beside it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The right to consume, held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
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
        Ok(Self { _file: file })
    }
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
