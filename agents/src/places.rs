//! Says where things lie.

use std::path::PathBuf;

use ropewalk_desk::ideas;
use ropewalk_schemas::{Slug, SpecId, UserSlug};

/// The repository of the user and the state directory beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The user's repository.
    pub repo: PathBuf,
    /// The state directory.
    pub state: PathBuf,
}

impl Places {
    /// Returns the folder of an idea.
    pub fn idea_folder(&self, user: &UserSlug, idea: &Slug) -> PathBuf {
        ideas::folder(&self.state, user, idea)
    }

    /// Returns the folder with the locks of specifications that are being written.
    pub(crate) fn specification_locks(&self) -> PathBuf {
        self.state.join("specifications")
    }

    /// Returns the lock of a specification that is being written.
    pub(crate) fn specification_lock(&self, spec: SpecId) -> PathBuf {
        self.specification_locks().join(format!("{spec}.lock"))
    }
}
