//! Gives the user's repository a branch by compare-and-swap, and touches nothing else in it.

use std::collections::BTreeSet;
use std::path::Path;

use ropewalk_schemas::CommitId;
use ropewalk_schemas::advice::Advice;

use crate::clone::{LOCAL_TRANSFER, TRANSFER_TIMEOUT};
use crate::{Git, GitError, LocalClone, stale};

/// What became of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publication {
    /// The branch is at the new commit now.
    Published,
    /// The branch was at the new commit already.
    AlreadyThere,
    /// Somebody else moved the branch; it stays where it is.
    MovedByOther {
        /// Where it is; `None` when it was deleted.
        actual: Option<CommitId>,
    },
}

/// Says why a branch could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The new commit does not follow the expected one, so the branch would be rewritten.
    #[error("`{new}` does not follow `{old}`")]
    Rewrites {
        /// Where the branch should be.
        old: CommitId,
        /// Where it should go.
        new: CommitId,
    },
    /// The user works on the branch right now.
    #[error("`{0}` is checked out in your repository")]
    CheckedOut(String),
    /// The branch is checked out with changes that no commit has.
    #[error(
        "`{branch}` is checked out in your repository with changes that are not committed, or with files that are in the way{}",
        named(files)
    )]
    Dirty {
        /// The branch.
        branch: String,
        /// The files, as far as they could be told.
        files: BTreeSet<String>,
    },
    /// The branch is checked out, and what changes goes through a program that the repository names.
    #[error(
        "`{branch}` is checked out in your repository, and the filter `{filter}` of its settings would have to run"
    )]
    Filtered {
        /// The branch.
        branch: String,
        /// The filter.
        filter: String,
    },
    /// Another git holds the branch, or one that was killed did; after a while its lock is cleared.
    #[error("`{0}` is locked in your repository by another git")]
    Locked(String),
    /// The repository takes no such branch.
    #[error("your repository refused the branch `{branch}`: {reason}")]
    Refused {
        /// The branch.
        branch: String,
        /// What git said.
        reason: String,
    },
    /// Git did not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Advice for PublishError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Rewrites { .. } => "a landed commit is never rewritten",
            Self::CheckedOut(_) => "switch to another branch there",
            Self::Dirty { .. } => "commit or stash them",
            Self::Filtered { .. } => "switch to another branch there, land, and switch back",
            Self::Locked(_) => "it is tried again",
            Self::Git(error) => return error.next(),
            Self::Refused { .. } => return None,
        };
        Some(next.to_owned())
    }
}

/// Names the first of some files, and says how many others there are.
fn named(files: &BTreeSet<String>) -> String {
    const FIRST: usize = 5;
    let first: Vec<String> = files
        .iter()
        .take(FIRST)
        .map(|file| format!("`{file}`"))
        .collect();
    let first = first.join(", ");
    match files.len().saturating_sub(FIRST) {
        0 if files.is_empty() => String::new(),
        0 => format!(": {first}"),
        others => format!(": {first} and {others} more"),
    }
}

/// Tells a refusal, with the cause where the repository named one.
fn refusal(line: &str, told: &str) -> String {
    let refused = line.rsplit('\t').next().unwrap_or(line);
    // What it cannot run beside its work, as a garbage collection, comes before.
    let cause = told.lines().rev().find_map(|line| {
        let line = line.strip_prefix("remote: ")?;
        let cause = line.strip_prefix("error: ");
        cause.or_else(|| line.strip_prefix("fatal: "))
    });
    match cause {
        Some(cause) => format!("{refused}: {}", cause.trim_end()),
        None => refused.to_owned(),
    }
}

impl LocalClone {
    /// Moves `branch` of the user's repository to `new` if it is at `expected_old` (`None`: if it does not exist).
    pub async fn publish(
        &self,
        branch: &str,
        new: &CommitId,
        expected_old: Option<&CommitId>,
    ) -> Result<Publication, PublishError> {
        if let Some(old) = expected_old
            && !self.is_ancestor(old, new).await?
        {
            return Err(PublishError::Rewrites {
                old: old.clone(),
                new: new.clone(),
            });
        }
        // A push that was killed leaves the lock of its ref behind, and the branch is ours.
        let lock = format!("refs/heads/{branch}.lock");
        stale::clear(&self.user().git_directory.join(lock));
        let server = Git::server("receive-pack");
        self.push_branch(branch, new, expected_old, &server).await
    }

    /// Pushes `new` into the user's repository if `branch` is at `expected_old`, to the git called as `server` there.
    pub(crate) async fn push_branch(
        &self,
        branch: &str,
        new: &CommitId,
        expected_old: Option<&CommitId>,
        server: &str,
    ) -> Result<Publication, PublishError> {
        let reference = format!("refs/heads/{branch}");
        let old = expected_old.map_or("", CommitId::as_str);
        let call = self
            .call([
                "push",
                "--porcelain",
                "--no-verify",
                "--no-signed",
                "--recurse-submodules=no",
            ])
            .argument(format!("--receive-pack={server}"))
            .argument(format!("--force-with-lease={reference}:{old}"))
            .argument("--")
            .argument(&self.user().path)
            .argument(format!("{new}:{reference}"))
            .settings(&LOCAL_TRANSFER)
            .timeout(TRANSFER_TIMEOUT);
        let output = self.git().try_run(call).await?;
        let answer = output.line();
        if output.code == 0 {
            let unmoved = answer.lines().any(|line| line.starts_with('='));
            return Ok(if unmoved {
                Publication::AlreadyThere
            } else {
                Publication::Published
            });
        }
        // The ref itself, not the wording of the refusal, says whether somebody else was first.
        let actual = self.user_branch(branch).await?;
        if actual.as_ref() == Some(new) {
            return Ok(Publication::AlreadyThere);
        }
        if actual.as_ref() != expected_old {
            return Ok(Publication::MovedByOther { actual });
        }
        if answer.contains("branch is currently checked out") {
            return Err(PublishError::CheckedOut(branch.to_owned()));
        }
        if [
            "unstaged changes",
            "staged changes",
            "Could not update working tree",
        ]
        .iter()
        .any(|reason| answer.contains(reason))
        {
            let files = match expected_old {
                Some(old) => self.in_the_way(new, old).await?,
                None => None,
            };
            return Err(PublishError::Dirty {
                branch: branch.to_owned(),
                files: files.unwrap_or_default(),
            });
        }
        match answer.lines().find(|line| line.starts_with('!')) {
            Some(line) => {
                let branch = branch.to_owned();
                let reason = refusal(line, &output.stderr);
                if reason.contains(".lock': File exists") {
                    return Err(PublishError::Locked(branch));
                }
                Err(PublishError::Refused { branch, reason })
            }
            None => Err(output.failure("push".to_owned()).into()),
        }
    }

    /// Returns where `branch` of the user's repository is.
    pub async fn user_branch(&self, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.branch_at(&self.user().path, branch).await
    }

    /// Returns where `branch` of a repository on this machine is.
    pub(crate) async fn branch_at(
        &self,
        place: &Path,
        branch: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let reference = format!("refs/heads/{branch}");
        let call = self
            .call(["ls-remote", "--refs"])
            .argument(format!("--upload-pack={}", Git::server("upload-pack")))
            .argument("--")
            .argument(place)
            .argument(&reference)
            .settings(&LOCAL_TRANSFER);
        let output = self.git().run(call).await?;
        let text = output.line();
        let mut branches = text.lines().filter_map(|line| line.split_once('\t'));
        // The name is a pattern that matches the ends of longer names too.
        let Some((commit, _)) = branches.find(|(_, name)| *name == reference) else {
            return Ok(None);
        };
        commit
            .parse()
            .map(Some)
            .map_err(|_| GitError::unreadable("ls-remote", text.as_bytes()))
    }
}
