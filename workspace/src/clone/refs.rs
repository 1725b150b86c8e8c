//! Reads refs and moves them by compare-and-swap.

use std::path::Path;
use std::time::Duration;

use ropewalk_schemas::CommitId;

use crate::{GitError, LocalClone};

/// A ref is locked for milliseconds; a lock this old belongs to a git that was killed.
const STALE_AFTER: Duration = Duration::from_secs(30);

impl LocalClone {
    /// Returns the commit that `revision` names, a ref or an id.
    pub async fn resolve(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        let call = self
            .call(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .argument(format!("{revision}^{{commit}}"));
        let output = self.git().try_run(call).await?;
        match output.code {
            0 => output.object("rev-parse").map(Some),
            // 1 is an unknown name, 128 an id of an object that is not there or is no commit.
            1 | 128 => Ok(None),
            _ => Err(output.failure("rev-parse".to_owned())),
        }
    }

    /// Lists the refs below `prefix` with their commits.
    pub async fn references(&self, prefix: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        let call = self.call(["for-each-ref", "--format=%(objectname) %(refname)", prefix]);
        let output = self.git().run(call).await?;
        let parse = |line: &str| {
            let (commit, reference) = line.split_once(' ')?;
            Some((reference.to_owned(), commit.parse().ok()?))
        };
        output
            .line()
            .lines()
            .map(|line| {
                parse(line).ok_or_else(|| GitError::unreadable("for-each-ref", line.as_bytes()))
            })
            .collect()
    }

    /// Moves `reference` to `new` if it is at `expected_old` (`None`: if it does not exist).
    pub async fn update_ref_cas(
        &self,
        reference: &str,
        new: &CommitId,
        expected_old: Option<&CommitId>,
    ) -> Result<(), GitError> {
        if !reference.starts_with("refs/") {
            return Err(GitError::BadRef(reference.to_owned()));
        }
        let zero = "0".repeat(new.as_str().len());
        let old = expected_old.map_or(zero.as_str(), CommitId::as_str);
        let mut lock_cleared = false;
        loop {
            let call = self.call(["update-ref", "--no-deref", reference, new.as_str(), old]);
            let output = self.git().try_run(call).await?;
            if output.code == 0 {
                return Ok(());
            }
            let actual = self.resolve(reference).await?;
            if actual.as_ref() != expected_old {
                let actual = actual.map(String::from);
                return Err(GitError::RefMoved {
                    reference: reference.to_owned(),
                    actual,
                });
            }
            if lock_cleared || !self.clear_stale_lock(reference) {
                return Err(output.failure("update-ref".to_owned()));
            }
            lock_cleared = true;
        }
    }

    /// Removes the locks that a killed git left on `reference`; says whether there was one.
    fn clear_stale_lock(&self, reference: &str) -> bool {
        let locks = [format!("{reference}.lock"), "packed-refs.lock".to_owned()];
        let stale = locks
            .iter()
            .map(|lock| self.directory().join(lock))
            .filter(|lock| is_stale(lock));
        let mut cleared = false;
        for lock in stale {
            tracing::warn!("removed the stale lock `{}`", lock.display());
            cleared |= std::fs::remove_file(lock).is_ok();
        }
        cleared
    }
}

fn is_stale(lock: &Path) -> bool {
    let modified = lock.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE_AFTER))
}
