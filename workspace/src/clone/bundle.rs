//! Writes the whole clone, with the branches of the user's repository, into one file, and takes it out again.

use std::path::Path;

use ropewalk_schemas::CommitId;

use super::{LOCAL_TRANSFER, TRANSFER_TIMEOUT};
use crate::git::Call;
use crate::{Git, GitError, LocalClone, UserRepository};

/// Where the branches lie that the user's repository had when the file was written.
const HEADS: &str = "refs/ropewalk/imported/heads/";

impl LocalClone {
    /// Writes every ref of the clone with all that it leads to into the file `to`.
    pub async fn write_bundle(&self, to: &Path) -> Result<(), GitError> {
        let call = self
            .call(["bundle", "create", "--quiet"])
            .argument(to)
            .argument("--all")
            .timeout(TRANSFER_TIMEOUT);
        self.git().run(call).await.map(drop)
    }

    /// Takes from the file `from` what was kept of attempts, and the branches of the repository that it was written for,
    /// which change nothing here.
    pub async fn take_bundle(&self, from: &Path) -> Result<(), GitError> {
        let call = self
            .call(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .argument("--")
            .argument(from)
            .argument("+refs/ropewalk/preserve/*:refs/ropewalk/preserve/*")
            .argument(format!("+refs/ropewalk/user/heads/*:{HEADS}*"))
            .argument("+refs/ropewalk/user/HEAD:refs/ropewalk/imported/HEAD")
            .settings(&LOCAL_TRANSFER)
            .timeout(TRANSFER_TIMEOUT);
        self.git().run(call).await.map(drop)
    }

    /// Returns whether the user's repository and the one that a bundle was written for begin with the same commit.
    pub async fn shares_history(&self) -> Result<bool, GitError> {
        let call = self.call([
            "merge-base",
            "refs/ropewalk/imported/HEAD",
            "refs/ropewalk/user/HEAD",
        ]);
        let output = self.git().try_run(call).await?;
        match output.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(output.failure("merge-base".to_owned())),
        }
    }

    /// Returns where `branch` was in the repository that a bundle was written for.
    pub async fn bundled_branch(&self, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.resolve(&format!("{HEADS}{branch}")).await
    }
}

impl UserRepository {
    /// Makes a repository in `directory`, which is there and empty, of the branches and tags in the file `bundle`, and
    /// checks `branch` out.
    pub async fn from_bundle(
        git: &Git,
        bundle: &Path,
        directory: &Path,
        branch: &str,
    ) -> Result<(), GitError> {
        let format = if sha256(bundle) { "sha256" } else { "sha1" };
        let init = Call::new(["init", "--quiet", "--template="])
            .argument(format!("--object-format={format}"))
            .argument(format!("--initial-branch={branch}"))
            .argument("--")
            .argument(directory);
        git.run(init).await?;
        let inside = directory.join(".git");
        let begin = |arguments: &[&str]| {
            Call::new(arguments)
                .git_directory(&inside)
                .directory(directory)
                .timeout(TRANSFER_TIMEOUT)
        };
        let fetch = begin(&["fetch", "--quiet", "--no-tags", "--update-head-ok"])
            .argument("--no-write-fetch-head")
            .argument("--")
            .argument(bundle)
            .argument("+refs/ropewalk/user/heads/*:refs/heads/*")
            .argument("+refs/ropewalk/user/tags/*:refs/tags/*")
            .settings(&LOCAL_TRANSFER);
        git.run(fetch).await?;
        let index = inside.join("index");
        let reset = begin(&["reset", "--quiet", "--hard"]).work_tree(directory, &index);
        git.run(reset).await.map(drop)
    }
}

/// Reads from the head of a bundle whether its objects have long names.
fn sha256(bundle: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 256];
    let read = std::fs::File::open(bundle).and_then(|mut file| file.read(&mut head));
    let text = String::from_utf8_lossy(&head[..read.unwrap_or_default()]).into_owned();
    text.contains("@object-format=sha256")
}
