//! Says what can keep a worker from its work: never the task's fault.

use std::path::Path;

use ropewalk_config::questions::RenderError;
use ropewalk_gate::GateError;
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::advice::Words;
use ropewalk_store::{CommitError, CommitFailure, ReadError};
use ropewalk_workspace::{GitError, PathError, PublishError, SlotError};

use super::machine::IllegalRequest;

/// What kept a worker from its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuilderError {
    /// The store could not be read.
    #[error("{}", Words::of(.0))]
    Read(#[from] ReadError),
    /// The store took no change.
    #[error("{}", Words::of(.0))]
    Commit(#[from] CommitError),
    /// Git did not do its part.
    #[error("{}", Words::of(.0))]
    Git(#[from] GitError),
    /// No checkout could be had or used.
    #[error("{}", Words::of(.0))]
    Slot(#[from] SlotError),
    /// A gate could not do its work.
    #[error("{}", Words::of(.0))]
    Gate(#[from] GateError),
    /// A branch could not be published.
    #[error("{}", Words::of(.0))]
    Publish(#[from] PublishError),
    /// A file of a slot could not be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A file of the state directory could not be used.
    #[error("cannot use `{path}`: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A question could not be asked.
    #[error(transparent)]
    Question(#[from] RenderError),
    /// A task or a build has no use for what was wanted of it.
    #[error(transparent)]
    Illegal(#[from] IllegalRequest),
    /// The frame refused.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Something that should be there is not.
    #[error("{0}")]
    Missing(String),
}

impl BuilderError {
    /// Says that a file of the state directory could not be used.
    pub(crate) fn of_file(path: &Path, source: std::io::Error) -> Self {
        Self::File {
            path: path.display().to_string(),
            source,
        }
    }

    /// Returns whether it is over once a person is done with what is theirs, and nobody has to ask them: they look at the branch, or
    /// stopped what would publish it.
    pub(crate) const fn is_left_to_people(&self) -> bool {
        matches!(
            self,
            Self::Publish(
                PublishError::CheckedOut(_)
                    | PublishError::Dirty { .. }
                    | PublishError::Filtered { .. }
                    | PublishError::Refused { .. }
                    | PublishError::Rewrites { .. }
            )
        )
    }

    /// Returns whether the same work may be the reason, and not only the store or whoever was faster.
    pub(crate) const fn may_be_the_works(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::Commit(_) | Self::Illegal(_))
    }
}

impl CommitFailure for BuilderError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BuilderError> for AgentError {
    fn from(error: BuilderError) -> Self {
        match error {
            BuilderError::Agent(error) => error,
            // No further try will find another state, unless somebody sends it again.
            BuilderError::Illegal(refused) => Self::permanent(refused),
            other => Self::transient(other),
        }
    }
}
