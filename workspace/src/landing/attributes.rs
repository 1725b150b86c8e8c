//! Lays out the attributes that a merge goes by.
//!
//! The clone is bare, and git reads attributes from a working tree; `--attr-source` came with git 2.41.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ropewalk_schemas::{CommitId, RepoPath};
use tempfile::TempDir;

use crate::git::Call;
use crate::{GitError, LocalClone};

const NAME: &str = ".gitattributes";

/// A working tree with the attribute files of a commit and nothing else.
#[derive(Debug)]
pub(super) struct Attributes {
    directory: TempDir,
    index: PathBuf,
}

impl Attributes {
    /// Lays out those files of `ours` that may say something about what differs from `theirs`; `None` where there are
    /// none.
    pub(super) async fn read(
        clone: &LocalClone,
        ours: &CommitId,
        theirs: &CommitId,
    ) -> Result<Option<Self>, GitError> {
        let changed = clone.changed_files(ours.as_str(), theirs.as_str()).await?;
        let places: BTreeSet<RepoPath> = changed
            .iter()
            .flat_map(|file| places(&file.path))
            .filter_map(|place| RepoPath::parse(&place).ok())
            .collect();
        let wanted: Vec<(&CommitId, &str)> =
            places.iter().map(|place| (ours, place.as_str())).collect();
        let contents = clone.read_places(&wanted).await?;
        let found: Vec<(&RepoPath, Vec<u8>)> = places
            .iter()
            .zip(contents)
            .filter_map(|(place, content)| Some((place, content?)))
            .collect();
        if found.is_empty() {
            return Ok(None);
        }
        let state = clone.state();
        let directory = tempfile::tempdir_in(state).map_err(GitError::files(state))?;
        for (place, content) in found {
            let path = directory.path().join(place.as_str());
            let parent = path.parent().unwrap_or(directory.path());
            fs::create_dir_all(parent).map_err(GitError::files(parent))?;
            fs::write(&path, content).map_err(GitError::files(&path))?;
        }
        let index = directory.path().join(".git-index");
        Ok(Some(Self { directory, index }))
    }

    /// Has a call go by the attributes.
    pub(super) fn apply<'a>(&'a self, call: Call<'a>) -> Call<'a> {
        let root = self.directory.path();
        call.work_tree(root, &self.index).directory(root)
    }
}

/// Tells where the attributes of a file may stand, from the root on.
fn places(path: &str) -> impl Iterator<Item = String> {
    let above = path
        .char_indices()
        .filter(|(_, letter)| *letter == '/')
        .map(|(end, _)| format!("{}/{NAME}", &path[..end]));
    std::iter::once(NAME.to_owned()).chain(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_may_stand_in_every_directory_above() {
        let found: Vec<String> = places("a/b/c.txt").collect();
        assert_eq!(
            found,
            [".gitattributes", "a/.gitattributes", "a/b/.gitattributes"]
        );
        assert_eq!(places("c.txt").count(), 1);
    }
}
