//! Says what went wrong with git, so that callers can tell the cases apart.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ropewalk_schemas::advice::Advice;

use crate::CommandError;

/// Says why a git verb did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git on this machine.
    #[error("git was not found on PATH")]
    Missing,
    /// The git of this machine cannot do what is needed.
    #[error("`{found}` is too old")]
    TooOld {
        /// What `git --version` said.
        found: String,
    },
    /// The directory holds no repository.
    #[error("`{}` is not a git repository", .path.display())]
    NotARepository {
        /// The directory.
        path: PathBuf,
        /// The repository that it lies in.
        within: Option<PathBuf>,
    },
    /// The repository has no commit to build on.
    #[error("`{}` has no commit on its current branch", .0.display())]
    NoCommit(PathBuf),
    /// The repository left files at its remote, and nothing is fetched from there in its name.
    #[error("`{}` is a partial clone, and every file is needed", .path.display())]
    PartialClone {
        /// The repository.
        path: PathBuf,
        /// The remote that has the files.
        remote: String,
    },
    /// The local clone is there but cannot be used.
    #[error("the local clone `{}` cannot be read: {reason}", .path.display())]
    DamagedClone {
        /// Where the clone lies.
        path: PathBuf,
        /// What git said.
        reason: String,
    },
    /// Somebody else moved the ref first.
    #[error("`{reference}` is not where it was expected: {}", at(.actual.as_deref()))]
    RefMoved {
        /// The ref that was to be moved.
        reference: String,
        /// Where it is now; `None` when it does not exist.
        actual: Option<String>,
    },
    /// No commit has this name.
    #[error("there is no commit `{0}` in the local clone")]
    UnknownCommit(String),
    /// The file would bring a secret into a commit.
    #[error("`{0}` holds a key, token or password of this program, which no commit may")]
    SecretHeld(String),
    /// The text cannot name a ref.
    #[error("`{0}` is not a valid ref name")]
    BadRef(String),
    /// The answer is larger than anything that is read.
    #[error("`git {command}` answered more than is read")]
    TooLong {
        /// The verb.
        command: String,
    },
    /// The call took too long.
    #[error("`git {command}` did not end within {after:?}")]
    TimedOut {
        /// The verb.
        command: String,
        /// The time it had.
        after: Duration,
    },
    /// A signal ended git.
    #[error("`git {command}` was killed")]
    Killed {
        /// The verb.
        command: String,
    },
    /// Git refused, for a reason of its own.
    #[error("`git {command}` failed with code {code}: {reason}")]
    Failed {
        /// The verb.
        command: String,
        /// The exit code.
        code: i32,
        /// The last words of git.
        reason: String,
    },
    /// Git answered something that this code does not understand.
    #[error("`git {command}` gave an answer that cannot be read: `{answer}`")]
    Unreadable {
        /// The verb.
        command: String,
        /// The part that was not understood.
        answer: String,
    },
    /// Git could not be started.
    #[error("could not start `git {command}`")]
    Start {
        /// The verb.
        command: String,
        /// Why.
        #[source]
        source: CommandError,
    },
    /// A file or directory of ours could not be used.
    #[error("cannot use `{}`: {source}", .path.display())]
    Files {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl Advice for GitError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Missing => "install git 2.38 or newer, for example with `apt install git`",
            Self::TooOld { .. } => "install git 2.38 or newer",
            Self::NotARepository {
                within: Some(root), ..
            } => {
                let root = root.display();
                return Some(format!("its repository is `{root}`: run it there"));
            }
            Self::NotARepository { within: None, .. } => {
                "run `git init` there or name another `repo`"
            }
            Self::NoCommit(_) => "make one with `git commit --allow-empty -m start`",
            Self::PartialClone { path, remote } => {
                let path = path.display();
                return Some(format!(
                    "run `git -C '{path}' config --unset remote.{remote}.partialclonefilter` \
                     and `git -C '{path}' fetch --refetch {remote}`"
                ));
            }
            Self::DamagedClone { .. } => {
                "it may hold work that exists nowhere else, so move it aside rather than delete it"
            }
            Self::UnknownCommit(_) => "fetch it first",
            Self::SecretHeld(_) => "take it out there",
            Self::Start { source, .. } => return source.next(),
            _ => return None,
        };
        Some(next.to_owned())
    }
}

impl GitError {
    /// Says that a directory is no repository, and which one it lies in.
    pub(crate) fn no_repository(path: PathBuf) -> Self {
        let above = path.ancestors().skip(1);
        let within = above
            .map(Path::to_owned)
            .find(|place| place.join(".git").exists());
        Self::NotARepository { path, within }
    }

    /// Wraps an I/O error together with its path.
    pub(crate) fn files(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { path, source }
    }

    /// Says that the answer of `command` cannot be read.
    pub(crate) fn unreadable(command: &str, answer: &[u8]) -> Self {
        let answer = String::from_utf8_lossy(answer).chars().take(200).collect();
        Self::Unreadable {
            command: command.to_owned(),
            answer,
        }
    }
}

fn at(actual: Option<&str>) -> String {
    actual.map_or_else(
        || "it does not exist".to_owned(),
        |commit| format!("it is at `{commit}`"),
    )
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;

    #[test]
    fn what_git_says_is_no_advice() {
        let damaged = GitError::DamagedClone {
            path: "/c".into(),
            reason: "bad object; gave up".to_owned(),
        };
        assert_eq!(
            Words::of(&damaged),
            (
                "the local clone `/c` cannot be read: bad object; gave up",
                "it may hold work that exists nowhere else, so move it aside rather than delete it"
            )
                .into()
        );
        let failed = GitError::Failed {
            command: "merge".to_owned(),
            code: 128,
            reason: "error: no room; fatal: cannot write".to_owned(),
        };
        let message = "`git merge` failed with code 128: error: no room; fatal: cannot write";
        assert_eq!(Words::of(&failed), message.into());
    }

    #[test]
    fn what_kept_git_from_starting_says_how_it_is_mended() {
        let start = GitError::Start {
            command: "fetch".to_owned(),
            source: CommandError::Directory("/gone".into()),
        };
        let next = "the command needs one to run in";
        assert_eq!(
            Words::of(&start),
            ("could not start `git fetch`", next).into()
        );
    }
}
