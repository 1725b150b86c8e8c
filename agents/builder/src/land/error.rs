//! Why a build is not landed.

use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::{BuildId, CommitId, RepoPath};
use ropewalk_store::{CommitError, ReadError};
use ropewalk_workspace::{ConflictFile, GitError, PublishError, PushError};

/// Says why a build was not landed; nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// There is no such build.
    #[error("no build is called `{0}`; `ropewalk build list` shows what there is")]
    Unknown(BuildId),
    /// The build has not reached its goal.
    #[error("build `{build}` is {state}; only one that succeeded is landed")]
    Unfinished {
        /// The build.
        build: BuildId,
        /// Its state.
        state: BuildState,
    },
    /// It was landed before.
    #[error(
        "build `{build}` was landed already, as `{commit}`; add `--push REMOTE` to send it somewhere"
    )]
    Already {
        /// The build.
        build: BuildId,
        /// The head that had it.
        commit: CommitId,
    },
    /// It was landed before, in another branch than the one that is to be sent on.
    #[error(
        "build `{build}` was landed as `{commit}`, which `{into}` does not have; name the branch that has it with `--into`"
    )]
    Elsewhere {
        /// The build.
        build: BuildId,
        /// The head that had it.
        commit: CommitId,
        /// The branch that has not.
        into: String,
    },
    /// It builds on another build, which is not landed.
    #[error("`{branch}` builds on `{first}`; land build `{build}` first")]
    Follows {
        /// The branch of the build.
        branch: String,
        /// The other build.
        build: BuildId,
        /// Its branch.
        first: String,
    },
    /// The branch to land in is not there.
    #[error("your repository has no branch `{0}` to land in; name one with `--into`")]
    NoBranch(String),
    /// The branch to land in is the build's own.
    #[error("`{0}` is the branch of the build itself; name another one with `--into`")]
    Itself(String),
    /// Both sides changed the same places.
    #[error(
        "`{branch}` and `{into}` changed the same places in {}; merge them yourself with `git merge {branch}`, then land again{}",
        named(.files), other_way(.build.filter(|_| can_resolve(.files)))
    )]
    Conflict {
        /// The build, where a task of it could resolve them: it is to be landed in the branch that it began from.
        build: Option<BuildId>,
        /// The branch of the build.
        branch: String,
        /// The branch to land in.
        into: String,
        /// Both sides.
        files: Vec<ConflictFile>,
    },
    /// What the merge would be does not pass.
    #[error(
        "`{branch}` passes alone, but not together with `{into}`: {findings}; build on what `{into}` holds now"
    )]
    Gate {
        /// The branch of the build.
        branch: String,
        /// The branch to land in.
        into: String,
        /// What did not hold, or could not run.
        findings: String,
    },
    /// The branch moved whenever a merge was ready.
    #[error("`{0}` keeps moving; land again when it rests")]
    Moving(String),
    /// The branch could not be moved.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// It is landed, but the remote did not get it.
    #[error("landed in `{into}`, but not pushed: {source}")]
    NotPushed {
        /// The branch that has it.
        into: String,
        /// Why.
        source: PushError,
    },
    /// Git did not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store took no change.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The gate could not be run.
    #[error(transparent)]
    House(#[from] AgentError),
}

impl LandError {
    /// Returns whether a person can mend it, so that trying again by itself is of no use.
    pub(crate) const fn is_for_people(&self) -> bool {
        matches!(
            self,
            Self::Unfinished { .. }
                | Self::Follows { .. }
                | Self::NoBranch(_)
                | Self::Itself(_)
                | Self::Conflict { .. }
                | Self::Gate { .. }
                | Self::Moving(_)
                | Self::Publish(
                    PublishError::CheckedOut(_)
                        | PublishError::Dirty(_)
                        | PublishError::Filtered { .. }
                        | PublishError::Refused { .. }
                )
        )
    }

    /// Returns whether a task of the build can resolve what stands against the landing.
    pub(crate) fn can_be_resolved(&self) -> bool {
        match self {
            Self::Conflict { build, files, .. } => build.is_some() && can_resolve(files),
            _ => false,
        }
    }

    /// Returns both sides of every conflict, as text.
    pub fn sides(&self) -> Option<String> {
        let Self::Conflict { files, .. } = self else {
            return None;
        };
        let shown = files.iter().map(ConflictFile::shown);
        Some(shown.collect::<Vec<_>>().join("\n"))
    }
}

/// Says that marks show every place where the files stand against each other, so that somebody can work on them.
pub(crate) fn can_resolve(files: &[ConflictFile]) -> bool {
    let is_marked =
        |file: &ConflictFile| file.hunks.is_some() && RepoPath::parse(&file.path).is_ok();
    !files.is_empty() && files.iter().all(is_marked)
}

fn other_way(build: Option<BuildId>) -> String {
    build.map_or_else(String::new, |build| {
        format!(", or let a task resolve them with `ropewalk build land {build} --resolve`")
    })
}

fn named(files: &[ConflictFile]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| format!("`{}`", file.path))
        .collect();
    names.join(", ")
}
