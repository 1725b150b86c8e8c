//! Says what can keep a gate from its work: never the fault of what it looks at.

use ropewalk_workspace::{CommandError, GitError, SlotError};

/// What kept a gate from its work.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// Git did not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No checkout could be had or used.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// A command could not be run at all.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file beside the checkout could not be used.
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
    /// Packages that could be installed before could not be installed again.
    #[error("the packages could not be installed again between two checks: {0}")]
    Reinstall(String),
    /// Somebody ended a check that nobody should end.
    #[error("the check of the whole was ended")]
    Ended,
}
