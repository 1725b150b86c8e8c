//! Moves a tree from one commit to another by what differs between them.

use std::collections::HashSet;

use ropewalk_schemas::CommitId;

use super::{Checkout, ancestors};
use crate::clone::TRANSFER_TIMEOUT;
use crate::{ChangedFile, GitError};

impl Checkout {
    /// Moves a tree that is exactly `before`.
    pub(super) async fn step(&self, before: &CommitId, commit: &CommitId) -> Result<(), GitError> {
        match self.clone.known_difference(before, commit) {
            Some(files) if are_plain(&files) => self.step_by_names(commit, &files).await,
            _ => self.step_by_trees(before, commit).await,
        }
    }

    /// Moves a tree with changes in it, which stay but where the commits differ.
    pub(crate) async fn follow(&mut self, commit: &CommitId) -> Result<(), GitError> {
        let Some(before) = self.base.clone() else {
            return Err(GitError::UnknownCommit("HEAD".to_owned()));
        };
        // Whoever takes it when this is cut short makes it anew.
        self.set_base(None)?;
        self.hide().await?;
        self.step_from(&before, commit).await?;
        self.set_base(Some(commit))?;
        self.lay().await
    }

    /// Lays the files of `commit` over those of the commit that is checked out, which it stays on, but for the files `left`.
    pub(crate) async fn lay_over(
        &mut self,
        commit: &CommitId,
        left: &[ChangedFile],
    ) -> Result<(), GitError> {
        let Some(before) = self.base.clone() else {
            return Err(GitError::UnknownCommit("HEAD".to_owned()));
        };
        self.set_base(None)?;
        self.hide().await?;
        self.step_from(&before, commit).await?;
        self.step_by_names(&before, left).await?;
        // The files are a change of it.
        let call = self
            .clone
            .call(["read-tree", "-m"])
            .argument(before.as_str());
        let call = call.work_tree(&self.tree, &self.index);
        self.clone.git().run(call.directory(&self.tree)).await?;
        self.set_base(Some(&before))?;
        self.lay().await
    }

    async fn step_from(&self, before: &CommitId, commit: &CommitId) -> Result<(), GitError> {
        let files = self.clone.changed_files(before.as_str(), commit.as_str());
        let files = files.await?;
        if are_plain(&files) {
            self.step_by_names(commit, &files).await
        } else {
            self.step_by_trees(before, commit).await
        }
    }

    /// Makes the files what they are in `commit`.
    ///
    /// Between two commits git looks at every file of both, and at the object of each; where the names of the few that
    /// differ are known, it need not.
    async fn step_by_names(
        &self,
        commit: &CommitId,
        files: &[ChangedFile],
    ) -> Result<(), GitError> {
        if files.is_empty() {
            return Ok(());
        }
        let mut names = Vec::new();
        for file in files {
            names.extend_from_slice(file.path.as_bytes());
            names.push(0);
        }
        let call = self
            .clone
            .call([
                "restore",
                "--staged",
                "--worktree",
                "--no-overlay",
                "--no-recurse-submodules",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
            ])
            .argument(format!("--source={commit}"))
            // The status of all files is known to be right.
            .settings(&["core.preloadIndex=false"])
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree)
            .stdin(names);
        self.clone.git().run(call.timeout(TRANSFER_TIMEOUT)).await?;
        Ok(())
    }

    /// Lets git find out what differs.
    async fn step_by_trees(&self, before: &CommitId, commit: &CommitId) -> Result<(), GitError> {
        let call = self
            .clone
            .call(["read-tree", "-m", "-u", "--no-recurse-submodules"])
            .argument(before.as_str())
            .argument(commit.as_str())
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree);
        self.clone.git().run(call.timeout(TRANSFER_TIMEOUT)).await?;
        Ok(())
    }
}

/// Says that the files can be restored by their names, whichever comes first.
fn are_plain(files: &[ChangedFile]) -> bool {
    let paths: HashSet<&[u8]> = files.iter().map(|file| file.path.as_bytes()).collect();
    files.iter().all(|file| {
        let path = file.path.as_str();
        // Attributes say how other files are written; a replacement character stands for bytes that are no text.
        let attributes = path.rsplit('/').next() == Some(".gitattributes");
        let text = !path.contains(char::REPLACEMENT_CHARACTER);
        // A directory has to go before a file can have its name.
        let below = ancestors(path.as_bytes()).any(|ancestor| paths.contains(ancestor));
        text && !attributes && !below
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChangeKind;

    #[test]
    fn what_depends_on_the_order_is_left_to_git() {
        let cases: [(&[&str], bool); 7] = [
            (&[], true),
            (&["README.md", "src/lib.rs", "src/main.rs"], true),
            (&["README", "README.md/one", ".gitattributes.old"], true),
            (&["README.md", "README.md/one"], false),
            (&[".gitattributes", "src/main.rs"], false),
            (&["src/.gitattributes"], false),
            (&["src/\u{fffd}.rs"], false),
        ];
        for (paths, plain) in cases {
            let changed = |path: &&str| ChangedFile {
                path: (*path).to_owned(),
                kind: ChangeKind::Modified,
            };
            let files: Vec<ChangedFile> = paths.iter().map(changed).collect();
            assert_eq!(are_plain(&files), plain, "{paths:?}");
        }
    }
}
