//! Walks the files of a slot as git sees them: ignored ones and `.git` are left out, links are not followed.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ropewalk_schemas::RepoPath;

/// Is a regular file of the slot.
pub(super) struct Found {
    /// Where it lies.
    pub(super) file: PathBuf,
    /// Its path in the repository.
    pub(super) path: String,
}

/// Lists the files below `below`, the whole slot when none is given.
pub(super) fn files(root: &Path, below: Option<&RepoPath>) -> impl Iterator<Item = Found> {
    let start = below.map_or_else(|| root.to_owned(), |below| root.join(below.as_str()));
    let root = root.to_owned();
    WalkBuilder::new(start)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(std::cmp::Ord::cmp)
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(move |entry| {
            let path = entry.path().strip_prefix(&root).ok()?.to_str()?.to_owned();
            Some(Found {
                file: entry.into_path(),
                path,
            })
        })
}
