//! Says of a failed model job whether another try may help.

use std::time::Duration;

use ropewalk_engine::EngineError;
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::advice::{Advice, Words};

use crate::idea_folder::FolderError;

/// So soon is a delivery looked at again that waits for a provider; that asks the store, and not the provider.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Returns whether the same job may succeed when it runs again.
pub(crate) fn may_pass(error: &EngineError) -> bool {
    match error {
        EngineError::Model(error) => error.retryable(),
        EngineError::Outage(_)
        | EngineError::Cancelled
        | EngineError::Read(_)
        | EngineError::Journal(_) => true,
        EngineError::Submission { .. }
        | EngineError::Stopped { .. }
        | EngineError::OnlyText { .. }
        | EngineError::DoomLoop { .. }
        | EngineError::TurnLimit { .. }
        | EngineError::TokenLimit { .. }
        | EngineError::Budget(_)
        | EngineError::Ended { .. }
        | EngineError::Job(_)
        | EngineError::JournalEntry { .. } => false,
    }
}

/// Returns the failure of a delivery whose job failed.
pub(crate) fn of_job(error: &EngineError) -> AgentError {
    if let EngineError::Outage(outage) = error {
        return AgentError::Postponed {
            after: LOOK_AGAIN,
            reason: outage.to_string(),
        };
    }
    if may_pass(error) {
        AgentError::transient(error)
    } else {
        AgentError::permanent(error)
    }
}

/// Returns the failure of a delivery for which the clone, or a checkout of it, could not be used.
pub(crate) fn of_repository(error: &impl Advice) -> AgentError {
    AgentError::transient(Words::of(error))
}

/// Returns the failure of a delivery that could not use the idea folder; a person can put it right.
pub(crate) fn of_folder(error: &FolderError) -> AgentError {
    AgentError::transient(error)
}
