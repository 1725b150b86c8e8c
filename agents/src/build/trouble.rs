//! Says what can keep a worker from its work: never the task's fault.

use ropewalk_config::questions::RenderError;
use ropewalk_orchestrator::AgentError;
use ropewalk_store::{CommitError, ReadError};
use ropewalk_workspace::{CommandError, GitError, PathError, PublishError, SlotError};

/// What kept a worker from its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store took no change.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// Git did not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No checkout could be had or used.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// A command could not be run at all.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A branch could not be published.
    #[error(transparent)]
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
    /// The project's file at the base commit says nothing that a gate could be made of.
    #[error("{0}")]
    BaseGate(String),
    /// A question could not be asked.
    #[error(transparent)]
    Question(#[from] RenderError),
    /// The frame refused.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The records kept changing.
    #[error("the records of `{0}` keep changing")]
    Contended(String),
    /// Something that should be there is not.
    #[error("{0}")]
    Missing(String),
}

impl From<Trouble> for AgentError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Agent(error) => error,
            other => Self::transient(other),
        }
    }
}
