//! Says what can keep a gate from its work: never the fault of what it looks at.

use ropewalk_schemas::advice::{Advice, Words};
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
    #[error("{}", .0.message)]
    BaseGate(Words),
    /// A checkout could not be made ready for its checks.
    #[error("the checkout could not be made ready: {0}")]
    NotReady(String),
    /// Somebody ended a check that nobody should end.
    #[error("the check of the whole was ended")]
    Ended,
}

impl Advice for GateError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.next(),
            Self::Slot(error) => error.next(),
            Self::Command(error) => error.next(),
            Self::BaseGate(words) => words.next.clone(),
            Self::File { .. } | Self::NotReady(_) | Self::Ended => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_of_a_base_says_how_it_is_mended() {
        let words = Words::from((
            "the gate of base commit `1` cannot be read: a; b",
            "drop it",
        ));
        assert_eq!(Words::of(&GateError::BaseGate(words.clone())), words);
        let git = GateError::from(GitError::UnknownCommit("1".to_owned()));
        assert_eq!(git.next().as_deref(), Some("fetch it first"));
    }
}
