//! Shows commands in a checkout a repository and a directory for scratch files, and takes both away with each move.

use super::{Checkout, blocking, sweep};
use crate::{GitError, History};

/// What git looks for in a checkout; no tree of git can hold a file of that name.
pub(super) const REPOSITORY: &str = ".git";

impl Checkout {
    /// Shows commands `history` from now on, after each move anew.
    pub(crate) async fn show(&mut self, history: History) -> Result<(), GitError> {
        self.history = Some(history);
        self.hide().await?;
        self.lay().await
    }

    /// Shows commands no repository from the next move on.
    pub(crate) fn forget_history(&mut self) {
        self.history = None;
    }

    /// Takes away what commands were shown, whatever they have made of it.
    pub(super) async fn hide(&self) -> Result<(), GitError> {
        let places = [self.tree.join(REPOSITORY), self.scratch()];
        if places.iter().all(|place| place.symlink_metadata().is_err()) {
            return Ok(());
        }
        let removed = blocking(move || {
            places
                .iter()
                .try_for_each(|place| sweep::remove_tree(place))
        });
        removed.await.map_err(GitError::files(&self.home))
    }

    /// Lays the repository of the commit that is checked out.
    pub(super) async fn lay(&self) -> Result<(), GitError> {
        let (Some(history), Some(base)) = (self.history.clone(), &self.base) else {
            return Ok(());
        };
        let tree = self.clone.tree_of(base).await?;
        let (place, index) = (self.tree.join(REPOSITORY), self.index.clone());
        let scratch = self.scratch();
        let laid = blocking(move || {
            std::fs::create_dir(scratch)?;
            history.lay(&tree, &place, &index)
        });
        laid.await.map_err(GitError::files(&self.home))
    }

    /// Returns the directory for what commands write down on the way; it is there while a history is shown.
    pub(crate) fn scratch(&self) -> std::path::PathBuf {
        self.home.join("tmp")
    }
}
