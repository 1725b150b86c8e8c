//! Looks at the repository of the user: its settings, its remotes, and whether its checkout is clean.

use std::collections::BTreeSet;
use std::io;

use crate::checkout::copy_with_its_time;
use crate::git::Call;
use crate::{GitError, LocalClone};

impl LocalClone {
    /// Lists the names of the settings of the user's repository that `pattern` matches, in small letters but for the
    /// middle part.
    pub(crate) async fn user_settings(&self, pattern: &str) -> Result<Vec<String>, GitError> {
        let call = Call::new(["config", "-z", "--name-only", "--get-regexp", pattern])
            .git_directory(&self.user().git_directory);
        let output = self.git().try_run(call).await?;
        match output.code {
            0 => Ok(output
                .fields()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect()),
            // There are none.
            1 => Ok(Vec::new()),
            _ => Err(output.failure("config".to_owned())),
        }
    }

    /// Returns the remote at which the user's repository left some of its files, if there is one.
    pub(crate) async fn promisor(&self) -> Result<Option<String>, GitError> {
        let names = self.user_settings(r"^remote\..*\.promisor$").await?;
        Ok(names.iter().find_map(|name| {
            let remote = name.strip_prefix("remote.")?.strip_suffix(".promisor")?;
            Some(remote.to_owned())
        }))
    }

    /// Says that the user's checkout holds changes that no commit has; always `false` for a bare repository.
    ///
    /// The look is taken with our own settings and a copy of the user's index, since `git status` in the
    /// repository itself would run its filters and its file system monitor. When in doubt it is dirty.
    pub async fn user_is_dirty(&self) -> Result<bool, GitError> {
        let more = ["--others", "--exclude-standard"];
        Ok(self.user_changes(&more).await?.is_some())
    }

    /// Returns the files known to git that differ in the user's checkout from its `HEAD`, and those that `more` finds; none
    /// where there is nothing. When in doubt there is something, also where no file can be named.
    pub(crate) async fn user_changes(
        &self,
        more: &[&str],
    ) -> Result<Option<BTreeSet<String>>, GitError> {
        let user = self.user();
        if user.bare {
            return Ok(None);
        }
        let scratch = tempfile::tempdir_in(self.state()).map_err(GitError::files(self.state()))?;
        let index = scratch.path().join("index");
        match copy_with_its_time(&user.git_directory.join("index"), &index) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(BTreeSet::new()));
            }
            Err(error) => return Err(GitError::files(&index)(error)),
        }
        let mut look = self.call(["ls-files", "-z", "--modified", "--deleted"]);
        for argument in more {
            look = look.argument(argument);
        }
        let look = look.work_tree(&user.path, &index);
        let unstaged = self.git().try_run(look).await?;
        let head = self.default_branch_head().await?;
        let staged = self
            .call([
                "diff-index",
                "--cached",
                "--name-only",
                "-z",
                head.commit.as_str(),
                "--",
            ])
            .work_tree(&user.path, &index);
        let staged = self.git().try_run(staged).await?;
        let names: BTreeSet<String> = unstaged
            .fields()
            .chain(staged.fields())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        let is_clean = unstaged.code == 0 && staged.code == 0 && names.is_empty();
        Ok((!is_clean).then_some(names))
    }
}
