//! Makes trees and commits without a working tree.

use std::path::Path;

use chrono::{DateTime, Utc};
use ropewalk_runtime::secrets;
use ropewalk_schemas::{CommitId, RepoPath};

use crate::commit::NewCommit;
use crate::{GitError, LocalClone};

/// What becomes of one file in a new tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file has this content.
    Write {
        /// The file.
        path: RepoPath,
        /// Its whole content.
        content: Vec<u8>,
    },
    /// The file is what it is in a commit, and may be run or leads elsewhere as there; gone where that has none.
    Restore {
        /// The file.
        path: RepoPath,
        /// The commit.
        from: CommitId,
    },
    /// The file is gone; it need not be there.
    Remove(RepoPath),
}

impl FileChange {
    /// Returns the file if it would hold a secret of this program.
    fn secret_in(&self) -> Option<&RepoPath> {
        match self {
            Self::Write { path, content } if secrets::is_in(content) => Some(path),
            _ => None,
        }
    }
}

impl LocalClone {
    /// Makes a commit of a tree; the same input gives the same id.
    pub async fn create_commit(&self, commit: NewCommit<'_>) -> Result<CommitId, GitError> {
        self.commit_text(
            commit.tree,
            commit.parents,
            commit.message.text(),
            commit.when,
        )
        .await
    }

    /// Makes a commit whose message is taken as it is.
    pub(crate) async fn commit_text(
        &self,
        tree: &str,
        parents: &[CommitId],
        text: String,
        when: DateTime<Utc>,
    ) -> Result<CommitId, GitError> {
        let mut call = self.call(["commit-tree", tree]);
        for parent in parents {
            call = call.argument("-p").argument(parent.as_str());
        }
        let date = format!("@{} +0000", when.timestamp());
        let identity = self.identity();
        let call = call
            .variable("GIT_AUTHOR_NAME", &identity.name)
            .variable("GIT_AUTHOR_EMAIL", &identity.email)
            .variable("GIT_AUTHOR_DATE", &date)
            .variable("GIT_COMMITTER_NAME", &identity.name)
            .variable("GIT_COMMITTER_EMAIL", &identity.email)
            .variable("GIT_COMMITTER_DATE", &date)
            .stdin(text);
        let commit = self.git().run(call).await?.object("commit-tree")?;
        self.known().commit(&commit, tree, parents);
        Ok(commit)
    }

    /// Makes the tree of `parent` with `changes` applied and returns its id.
    pub async fn create_tree(
        &self,
        parent: &CommitId,
        changes: &[FileChange],
    ) -> Result<String, GitError> {
        if let Some(path) = changes.iter().find_map(FileChange::secret_in) {
            return Err(GitError::SecretHeld(path.to_string()));
        }
        let scratch = tempfile::tempdir_in(self.state()).map_err(GitError::files(self.state()))?;
        let contents = scratch.path().join("contents");
        let blobs = self.write_blobs(&contents, changes).await?;
        let mut blobs = blobs.iter();
        let mut lines = Vec::new();
        for change in changes {
            let line = match change {
                FileChange::Write { path, .. } => {
                    let blob = blobs
                        .next()
                        .ok_or_else(|| GitError::unreadable("hash-object", b""))?;
                    format!("100644 {blob}\t{path}\0")
                }
                FileChange::Restore { path, from } => {
                    let entry = self.index_line(from, path).await?;
                    entry.unwrap_or_else(|| removal(parent, path))
                }
                FileChange::Remove(path) => removal(parent, path),
            };
            lines.extend_from_slice(line.as_bytes());
        }
        self.tree_with(parent.as_str(), lines).await
    }

    /// Returns a file of a commit as a line for an index; none where the commit has none.
    async fn index_line(
        &self,
        commit: &CommitId,
        path: &RepoPath,
    ) -> Result<Option<String>, GitError> {
        let call = self.call([
            "ls-tree",
            "--full-tree",
            "--format=%(objectmode) %(objectname)",
        ]);
        let call = call.argument(commit.as_str()).argument("--");
        let output = self.git().run(call.argument(path.as_str())).await?;
        let entry = output.line();
        Ok((!entry.is_empty()).then(|| format!("{entry}\t{path}\0")))
    }

    /// Makes the tree of `base`, which is a commit or a tree, with `entries` in it, each `<mode> <blob>\t<path>\0`; one of the
    /// mode 0 is taken out.
    pub(crate) async fn tree_with(&self, base: &str, entries: Vec<u8>) -> Result<String, GitError> {
        let scratch = tempfile::tempdir_in(self.state()).map_err(GitError::files(self.state()))?;
        let index = scratch.path().join("index");
        let call = self.call(["read-tree", base]);
        self.git().run(call.index(&index)).await?;
        let call = self.call(["update-index", "-z", "--replace", "--index-info"]);
        self.git().run(call.index(&index).stdin(entries)).await?;
        self.write_tree(&index).await
    }

    /// Stores an index as a tree and returns its id.
    pub(crate) async fn write_tree(&self, index: &Path) -> Result<String, GitError> {
        Ok(self
            .git()
            .run(self.call(["write-tree"]).index(index))
            .await?
            .line())
    }

    /// Stores the contents of all written files in one call, through files so that any bytes pass.
    async fn write_blobs(
        &self,
        directory: &Path,
        changes: &[FileChange],
    ) -> Result<Vec<String>, GitError> {
        std::fs::create_dir_all(directory).map_err(GitError::files(directory))?;
        let mut names = String::new();
        for (number, change) in changes.iter().enumerate() {
            if let FileChange::Write { content, .. } = change {
                let file = directory.join(number.to_string());
                std::fs::write(&file, content).map_err(GitError::files(&file))?;
                names.push_str(&number.to_string());
                names.push('\n');
            }
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call(["hash-object", "-w", "--no-filters", "--stdin-paths"]);
        let output = self
            .git()
            .run(call.directory(directory).stdin(names))
            .await?;
        Ok(output.line().lines().map(str::to_owned).collect())
    }
}

/// Returns the line for an index that takes a file out of it; `parent` tells how long its names are.
fn removal(parent: &CommitId, path: &RepoPath) -> String {
    format!("0 {}\t{path}\0", "0".repeat(parent.as_str().len()))
}
