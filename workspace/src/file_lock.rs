//! Lets one at a time do what must not be done twice at once, over all processes on a state directory.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::GitError;

/// How long whoever waits for a lock leaves it alone.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is free again when it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct FileLock {
    _file: Flock<File>,
}

impl FileLock {
    /// Takes the lock of the file `path`, which is made if it is not there; `None` when somebody has it.
    pub fn take(path: &Path) -> Result<Option<Self>, GitError> {
        let file = File::create(path).map_err(GitError::files(path))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Some(Self { _file: file })),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(GitError::files(path)(error.into())),
        }
    }

    /// Waits for the lock.
    pub async fn wait(path: &Path) -> Result<Self, GitError> {
        loop {
            if let Some(lock) = Self::take(path)? {
                return Ok(lock);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_has_one_holder_and_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = FileLock::take(&path).unwrap().unwrap();
        assert!(FileLock::take(&path).unwrap().is_none());
        let mut waiting = std::pin::pin!(FileLock::wait(&path));
        let early = tokio::time::timeout(PAUSE * 2, &mut waiting).await;
        assert!(early.is_err());
        drop(held);
        waiting.await.unwrap();
    }
}
