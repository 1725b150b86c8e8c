//! Says where things lie.

use std::path::PathBuf;

use ropewalk_schemas::{Slug, UserSlug};

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
        self.state
            .join("users")
            .join(user.as_str())
            .join("ideas")
            .join(idea.as_str())
    }
}
