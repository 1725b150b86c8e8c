//! Holds a checkout for one process, and ends what an earlier holder that was killed left running there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::orphans::end_orphans_in;
use crate::{FileLock, GitError};

/// The right to work in a checkout, over all processes of this machine, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    /// Is there for as long as somebody works in the checkout, and stays when that one is killed.
    mark: PathBuf,
    _lock: FileLock,
}

impl Hold {
    /// Takes the checkout in `home`; `None` when somebody has it.
    pub(super) async fn take(home: &Path) -> Result<Option<Self>, GitError> {
        let Some(lock) = FileLock::take(&home.join("lock"))? else {
            return Ok(None);
        };
        let mark = home.join("held");
        if mark.exists() {
            let ended = end_orphans_in(home).await;
            if ended > 0 {
                tracing::warn!(
                    "ended {ended} commands that a process which was killed had left in `{}`",
                    home.display()
                );
            }
        }
        fs::write(&mark, "").map_err(GitError::files(&mark))?;
        Ok(Some(Self { mark, _lock: lock }))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A mark that stays costs the next holder a look at the table of processes, no more.
        fs::remove_file(&self.mark).ok();
    }
}
