//! Brings a commit into a branch of the user's repository, on the word of a person, and nothing else into it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use ropewalk_schemas::CommitId;
use ropewalk_schemas::advice::Advice;

use crate::clone::{LOCAL_TRANSFER, TRANSFER_TIMEOUT};
use crate::commit::{ChangeKind, ChangedFile, NewCommit};
use crate::landing::{MergedTrees, Notes};
use crate::{CommitMessage, ConflictFile, Git, GitError, LocalClone, Publication, PublishError};

/// What bringing a commit into a branch comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The branch holds the commit already.
    Contained,
    /// The commit follows the branch, which only has to move.
    FastForward,
    /// Both went on; this commit holds both.
    Merged(CommitId),
    /// Both changed the same place; nothing was written.
    Conflict(Vec<ConflictFile>),
}

/// Says why a branch was not sent to a remote repository.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The repository has no such remote, and there is no such directory.
    #[error("`{0}` is neither a remote of your repository nor a directory")]
    Unknown(String),
    /// The remote is not on this machine.
    #[error("`{remote}` is at `{url}`, and only a repository on this machine is pushed to")]
    NotLocal {
        /// The remote.
        remote: String,
        /// Where it is.
        url: String,
        /// The branch.
        branch: String,
    },
    /// The remote did not take the branch.
    #[error("`{remote}` refused the branch `{branch}`: {reason}")]
    Refused {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What git said.
        reason: String,
    },
    /// Git did not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Advice for PushError {
    fn next(&self) -> Option<String> {
        match self {
            Self::NotLocal { remote, branch, .. } => {
                Some(format!("run `git push {remote} {branch}`"))
            }
            Self::Unknown(_) => Some("`git remote` lists those that it has".to_owned()),
            Self::Git(error) => error.next(),
            Self::Refused { .. } => None,
        }
    }
}

impl LocalClone {
    /// Joins `head` with `into` in memory: nothing but objects is written, and no ref moves.
    pub async fn merge(
        &self,
        head: &CommitId,
        into: &CommitId,
        notes: &Notes,
        message: &CommitMessage,
        when: DateTime<Utc>,
    ) -> Result<Merge, GitError> {
        if self.is_ancestor(head, into).await? {
            return Ok(Merge::Contained);
        }
        if self.is_ancestor(into, head).await? {
            return Ok(Merge::FastForward);
        }
        match self.merge_trees(into, head, Some(notes)).await? {
            MergedTrees::Conflict { files, .. } => Ok(Merge::Conflict(files)),
            MergedTrees::Clean(tree) => {
                let commit = NewCommit {
                    tree: &tree,
                    parents: &[into.clone(), head.clone()],
                    message,
                    when,
                };
                Ok(Merge::Merged(self.create_commit(commit).await?))
            }
        }
    }

    /// Joins `other` with `head` as far as they go together: a commit of both, whose files bear marks where they do not.
    ///
    /// It is what somebody begins on who resolves them, and never to be landed.
    pub async fn merge_marked(
        &self,
        head: &CommitId,
        other: &CommitId,
        notes: &Notes,
        message: &CommitMessage,
        when: DateTime<Utc>,
    ) -> Result<CommitId, GitError> {
        let tree = match self.merge_trees(head, other, Some(notes)).await? {
            MergedTrees::Clean(tree) => tree,
            MergedTrees::Conflict { marked, .. } => marked,
        };
        let commit = NewCommit {
            tree: &tree,
            parents: &[head.clone(), other.clone()],
            message,
            when,
        };
        self.create_commit(commit).await
    }

    /// Moves a branch of the user's repository from `expected_old` to `new`, with its checkout if there is one.
    ///
    /// Git itself refuses a checkout that holds changes of its own, or files that are in the way. A filter that the
    /// repository configures does not run; a checkout whose changed files would need it is refused.
    pub async fn advance(
        &self,
        branch: &str,
        new: &CommitId,
        expected_old: &CommitId,
    ) -> Result<Publication, PublishError> {
        let filters = self.runs_no_filter(branch, new, expected_old).await?;
        let mut settings = vec!["receive.denyCurrentBranch=updateInstead".to_owned()];
        for filter in &filters {
            settings.extend(
                ["clean=", "smudge=", "process=", "required=false"]
                    .map(|setting| format!("filter.{filter}.{setting}")),
            );
        }
        let server = Git::server_with(&settings, "receive-pack");
        self.push_branch(branch, new, Some(expected_old), &server)
            .await
    }

    /// Refuses what [`LocalClone::advance`] would refuse as the user's checkout is now; moves nothing.
    pub async fn may_advance(
        &self,
        branch: &str,
        new: &CommitId,
        expected_old: &CommitId,
    ) -> Result<(), PublishError> {
        self.runs_no_filter(branch, new, expected_old).await?;
        let user = self.user();
        if user.bare || self.default_branch_head().await?.branch.as_deref() != Some(branch) {
            return Ok(());
        }
        match self.in_the_way(new, expected_old).await? {
            Some(files) => Err(PublishError::Dirty {
                branch: branch.to_owned(),
                files,
            }),
            None => Ok(()),
        }
    }

    /// Returns the files of the user's checkout that a move of its branch would write over; none where nothing is.
    pub(crate) async fn in_the_way(
        &self,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<Option<BTreeSet<String>>, GitError> {
        let user = self.user();
        let changed = self.changed_files(old.as_str(), new.as_str()).await?;
        let is_in_the_way = |file: &ChangedFile| {
            let is_new = file.kind == ChangeKind::Added;
            is_new && user.path.join(&file.path).symlink_metadata().is_ok()
        };
        let uncommitted = self.user_changes(&[]).await?;
        let others = changed.into_iter().filter(is_in_the_way);
        let others: BTreeSet<String> = others.map(|file| file.path).collect();
        if uncommitted.is_none() && others.is_empty() {
            return Ok(None);
        }
        let mut all = uncommitted.unwrap_or_default();
        all.extend(others);
        Ok(Some(all))
    }

    /// Refuses a move for which a filter of the user's repository would have to run; returns those that it configures.
    async fn runs_no_filter(
        &self,
        branch: &str,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<BTreeSet<String>, PublishError> {
        let filters = self.filters().await?;
        if let Some(filter) = self.needed(&filters, new, old).await? {
            let branch = branch.to_owned();
            return Err(PublishError::Filtered { branch, filter });
        }
        Ok(filters)
    }

    /// Lists the filters that the user's repository configures.
    async fn filters(&self) -> Result<BTreeSet<String>, GitError> {
        let names = self
            .user_settings(r"^filter\..*\.(clean|smudge|process)$")
            .await?;
        Ok(names
            .iter()
            .filter_map(|name| Some(name.strip_prefix("filter.")?.rsplit_once('.')?.0.to_owned()))
            .collect())
    }

    /// Finds a filter that a file which differs between the two commits would go through in the user's checkout.
    async fn needed(
        &self,
        filters: &BTreeSet<String>,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<Option<String>, GitError> {
        let user = self.user();
        if filters.is_empty() || user.bare {
            return Ok(None);
        }
        let mut names = Vec::new();
        for file in self.changed_files(old.as_str(), new.as_str()).await? {
            names.extend_from_slice(file.path.as_bytes());
            names.push(0);
        }
        let index = user.git_directory.join("index");
        let call = self
            .call(["check-attr", "-z", "--stdin", "filter"])
            .work_tree(&user.path, &index)
            .directory(&user.path)
            .stdin(names);
        let output = self.git().run(call).await?;
        let fields: Vec<&[u8]> = output.fields().collect();
        let values = fields
            .chunks_exact(3)
            .map(|answer| String::from_utf8_lossy(answer[2]));
        Ok(values
            .map(std::borrow::Cow::into_owned)
            .find(|filter| filters.contains(filter)))
    }

    /// Refuses what names no repository, before anything is done that is to be sent there as `branch`.
    pub async fn names_a_place(&self, remote: &str, branch: &str) -> Result<(), PushError> {
        match self.place_of(remote, branch).await {
            Ok(_) | Err(PushError::NotLocal { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends `commit` as `branch` to a repository on this machine: a remote of the user's repository, or a directory.
    ///
    /// Nothing is forced: a branch that has other commits stays as it is.
    pub async fn push_to(
        &self,
        remote: &str,
        branch: &str,
        commit: &CommitId,
    ) -> Result<(), PushError> {
        let place = self.place_of(remote, branch).await?;
        let reference = format!("refs/heads/{branch}");
        let call = self
            .call([
                "push",
                "--porcelain",
                "--no-verify",
                "--no-signed",
                "--recurse-submodules=no",
            ])
            .argument(format!("--receive-pack={}", Git::server("receive-pack")))
            .argument("--")
            .argument(&place)
            .argument(format!("{commit}:{reference}"))
            .settings(&LOCAL_TRANSFER)
            .timeout(TRANSFER_TIMEOUT);
        let output = self.git().try_run(call).await?;
        if output.code == 0 || self.has(&place, branch, commit).await? {
            return Ok(());
        }
        let answer = output.line();
        let refusal = answer.lines().find(|line| line.starts_with('!'));
        let reason = refusal.map_or_else(
            || output.stderr.trim().to_owned(),
            |line| line.rsplit('\t').next().unwrap_or(line).to_owned(),
        );
        Err(PushError::Refused {
            remote: remote.to_owned(),
            branch: branch.to_owned(),
            reason,
        })
    }

    /// Says that `branch` of a repository has `commit` already, beside commits that the clone knows.
    async fn has(&self, place: &Path, branch: &str, commit: &CommitId) -> Result<bool, GitError> {
        let Some(tip) = self.branch_at(place, branch).await? else {
            return Ok(false);
        };
        let known = self.resolve(tip.as_str()).await?.is_some();
        Ok(known && self.is_ancestor(commit, &tip).await?)
    }

    /// Finds the directory of a remote; only its address is read from the user's settings.
    async fn place_of(&self, remote: &str, branch: &str) -> Result<PathBuf, PushError> {
        let user = self.user();
        let call = self
            .call(["config", "--file"])
            .argument(user.git_directory.join("config"))
            .argument("--get")
            .argument(format!("remote.{remote}.url"));
        let output = self.git().try_run(call).await?;
        let url = (output.code == 0).then(|| output.line());
        let address = url.as_deref().unwrap_or(remote);
        let path = user
            .path
            .join(address.strip_prefix("file://").unwrap_or(address));
        match (path.is_dir(), url) {
            (true, _) => Ok(path),
            (false, Some(url)) => Err(PushError::NotLocal {
                remote: remote.to_owned(),
                url,
                branch: branch.to_owned(),
            }),
            (false, None) => Err(PushError::Unknown(remote.to_owned())),
        }
    }
}
