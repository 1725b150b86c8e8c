//! Keeps secrets of this program out of commits: what holds one is in none, and whoever commits is told which that is.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ropewalk_runtime::secrets;
use ropewalk_schemas::CommitId;

use super::{Change, Checkout, blocking};
use crate::GitError;

impl Checkout {
    /// Parts those of `changes` that bring a secret into the tree of `base` from the others.
    pub(crate) async fn part_secrets(
        &self,
        base: &CommitId,
        changes: Vec<Change>,
    ) -> Result<(Vec<Change>, Vec<Change>), GitError> {
        if !secrets::are_known() {
            return Ok((Vec::new(), changes));
        }
        let places: Vec<_> = changes
            .iter()
            .map(|change| self.place(&change.path))
            .collect();
        let looked = blocking(move || places.iter().map(|place| holds_secret(place)).collect());
        let looked: Vec<bool> = looked.await.map_err(GitError::files(&self.tree))?;
        let (mut held, mut others) = (Vec::new(), Vec::new());
        for (change, holds) in changes.into_iter().zip(looked) {
            let is_named = secrets::is_in(&change.path);
            // What people have committed already is no news, and whoever changes such a file is not to blame.
            if is_named || (holds && !self.held_before(base, &change).await?) {
                held.push(change);
            } else {
                others.push(change);
            }
        }
        Ok((held, others))
    }

    async fn held_before(&self, base: &CommitId, change: &Change) -> Result<bool, GitError> {
        let before = self.clone.read_file(base, &change.public().path).await?;
        Ok(before.is_some_and(|content| secrets::is_in(&content)))
    }
}

/// Looks into a file, or at where a link leads.
fn holds_secret(place: &Path) -> std::io::Result<bool> {
    let found = match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_symlink() => {
            fs::read_link(place).map(|to| secrets::is_in(to.as_os_str().as_bytes()))
        }
        Ok(metadata) if metadata.is_file() => {
            fs::read(place).map(|content| secrets::is_in(&content))
        }
        other => other.map(|_| false),
    };
    match found {
        // Deleted, or below what became something else.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        found => found,
    }
}
