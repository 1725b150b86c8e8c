//! Why a build is not landed.

use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::{BuildId, CommitId, RepoPath};
use ropewalk_store::{CommitError, ReadError};
use ropewalk_workspace::{ConflictFile, GitError, PublishError, PushError};

/// Says why a build was not landed; nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// There is no such build.
    #[error("no build is called `{0}`")]
    Unknown(BuildId),
    /// The build has not reached its goal.
    #[error("build `{build}` is {state}")]
    Unfinished {
        /// The build.
        build: BuildId,
        /// Its state.
        state: BuildState,
    },
    /// It was landed before.
    #[error("build `{build}` was landed already, as `{commit}`")]
    Already {
        /// The build.
        build: BuildId,
        /// The head that had it.
        commit: CommitId,
    },
    /// It was landed before, in another branch than the one that is to be sent on.
    #[error("build `{build}` was landed as `{commit}`, which `{into}` does not have")]
    Elsewhere {
        /// The build.
        build: BuildId,
        /// The head that had it.
        commit: CommitId,
        /// The branch that has not.
        into: String,
    },
    /// It builds on another build, which is not landed.
    #[error("`{branch}` builds on `{first}`")]
    Follows {
        /// The branch of the build.
        branch: String,
        /// The other build.
        build: BuildId,
        /// Its branch.
        first: String,
    },
    /// The branch to land in is not there.
    #[error("your repository has no branch `{0}` to land in")]
    NoBranch(String),
    /// The branch to land in is the build's own.
    #[error("`{0}` is the branch of the build itself")]
    Itself(String),
    /// Both sides changed the same places.
    #[error("`{branch}` and `{into}` changed the same places in {}", named(.files))]
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
    /// Documents of the idea would replace others that lie where they go.
    #[error(
        "`{into}` has documents in `{folder}` that no landing of this project brought, and the build would replace them"
    )]
    Documents {
        /// The build.
        build: BuildId,
        /// The branch to land in.
        into: String,
        /// The folder of the idea.
        folder: RepoPath,
    },
    /// What the merge would be does not pass.
    #[error("`{branch}` passes alone, but not together with `{into}`: {findings}")]
    Gate {
        /// The branch of the build.
        branch: String,
        /// The branch to land in.
        into: String,
        /// What did not hold, or could not run.
        findings: String,
    },
    /// The branch moved whenever a merge was ready.
    #[error("`{0}` keeps moving")]
    Moving(String),
    /// The program ended too often in the midst of it.
    #[error("the program ended {often} in a row while `{branch}` was landed")]
    Deadly {
        /// The branch of the build.
        branch: String,
        /// How often, in words.
        often: String,
    },
    /// The branch could not be moved.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// What it is to be sent to is no repository; nothing has moved.
    #[error("it is not landed, since it cannot be sent on: {0}")]
    NoPlace(#[source] PushError),
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
    NoGate(#[from] AgentError),
}

impl Advice for LandError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::Unknown(_) => "`ropewalk build list` shows what there is".to_owned(),
            Self::Unfinished { .. } => "only one that succeeded is landed".to_owned(),
            Self::Already { .. } => "add `--push REMOTE` to send it somewhere".to_owned(),
            Self::Elsewhere { .. } => "name the branch that has it with `--into`".to_owned(),
            Self::Follows { build, .. } => format!("land build `{build}` first"),
            Self::NoBranch(_) => "name one with `--into`".to_owned(),
            Self::Itself(_) => "name another one with `--into`".to_owned(),
            Self::Conflict {
                build,
                branch,
                files,
                ..
            } => format!(
                "merge them yourself with `git merge {branch}`, then land again{}",
                other_way(build.filter(|_| can_resolve(files)))
            ),
            Self::Documents { build, .. } => format!(
                "`ropewalk build land {build} --without-ideas` leaves them as they are and lands the rest"
            ),
            Self::Gate { into, .. } => format!("build on what `{into}` holds now"),
            Self::Moving(_) => "land again when it rests".to_owned(),
            Self::Deadly { .. } => {
                "mend what ends it, which may be a command of the gate, then land again".to_owned()
            }
            Self::Publish(error) => return error.next(),
            Self::NoPlace(source) | Self::NotPushed { source, .. } => return source.next(),
            Self::Git(error) => return error.next(),
            Self::Read(error) => return error.next(),
            Self::Commit(error) => return error.next(),
            Self::NoGate(_) => return None,
        })
    }
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
                | Self::Documents { .. }
                | Self::Gate { .. }
                | Self::Moving(_)
                | Self::Deadly { .. }
                | Self::Publish(
                    PublishError::CheckedOut(_)
                        | PublishError::Dirty { .. }
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

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;

    #[test]
    fn what_a_gate_found_is_no_advice() {
        let gate = LandError::Gate {
            branch: "build/walks".to_owned(),
            into: "main".to_owned(),
            findings: "1 failed; 2 could not run".to_owned(),
        };
        assert_eq!(
            Words::of(&gate),
            (
                "`build/walks` passes alone, but not together with `main`: 1 failed; 2 could not run",
                "build on what `main` holds now"
            )
                .into()
        );
    }

    #[test]
    fn a_conflict_that_no_task_resolves_is_for_people() {
        let conflict = LandError::Conflict {
            build: None,
            branch: "build/walks".to_owned(),
            into: "main".to_owned(),
            files: Vec::new(),
        };
        let next = conflict.next();
        assert_eq!(
            next.as_deref(),
            Some("merge them yourself with `git merge build/walks`, then land again")
        );
    }

    #[test]
    fn whoever_stands_in_the_way_says_how_it_is_mended() {
        let named: Vec<String> = (1..8).map(|number| format!("{number}.txt")).collect();
        for (count, expected) in [
            (0, ""),
            (2, ": `1.txt`, `2.txt`"),
            (
                7,
                ": `1.txt`, `2.txt`, `3.txt`, `4.txt`, `5.txt` and 2 more",
            ),
        ] {
            let dirty = LandError::from(PublishError::Dirty {
                branch: "main".to_owned(),
                files: named[..count].iter().cloned().collect(),
            });
            let Words { message, next } = Words::of(&dirty);
            assert!(
                message.ends_with(&format!("in the way{expected}")),
                "{message}"
            );
            assert_eq!(next.as_deref(), Some("commit or stash them"));
        }
        let far = LandError::NotPushed {
            into: "main".to_owned(),
            source: PushError::NotLocal {
                remote: "origin".to_owned(),
                url: "ssh://h/r".to_owned(),
                branch: "main".to_owned(),
            },
        };
        assert_eq!(
            Words::of(&far),
            (
                "landed in `main`, but not pushed: `origin` is at `ssh://h/r`, and only a repository on this machine \
                 is pushed to",
                "run `git push origin main`"
            )
                .into()
        );
    }
}
