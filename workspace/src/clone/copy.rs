//! Makes a repository of its own out of one commit.

use std::path::Path;

use ropewalk_schemas::CommitId;

use super::{LOCAL_TRANSFER, TRANSFER_TIMEOUT};
use crate::git::Call;
use crate::{Git, GitError, LocalClone, UserRepository};

impl LocalClone {
    /// Makes a bare repository in `directory`, which is not there yet or is empty: its one branch is `branch`, at `commit`.
    pub async fn copy_to(
        &self,
        directory: &Path,
        branch: &str,
        commit: &CommitId,
    ) -> Result<UserRepository, GitError> {
        let init = Call::new(["init", "--quiet", "--bare", "--template="])
            .argument(format!("--initial-branch={branch}"))
            .argument(format!("--object-format={}", self.user().object_format))
            .argument("--")
            .argument(directory);
        self.git().run(init).await?;
        self.add_to(directory, branch, commit).await?;
        UserRepository::inspect(self.git(), directory).await
    }

    /// Adds `branch` at `commit` to the bare repository in `directory`.
    pub async fn add_to(
        &self,
        directory: &Path,
        branch: &str,
        commit: &CommitId,
    ) -> Result<(), GitError> {
        let push = self
            .call(["push", "--quiet", "--no-verify", "--no-signed"])
            .argument(format!("--receive-pack={}", Git::server("receive-pack")))
            .argument("--")
            .argument(directory)
            .argument(format!("{commit}:refs/heads/{branch}"))
            .settings(&LOCAL_TRANSFER)
            .timeout(TRANSFER_TIMEOUT);
        self.git().run(push).await?;
        Ok(())
    }
}
