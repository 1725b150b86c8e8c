//! The life of a build: its states with what belongs to each, and their written form in the record.

mod apply;
mod input;

use chrono::{DateTime, Utc};
use ropewalk_schemas::build::{Build, BuildState, PauseReason, StopCause};

pub use apply::{apply, apply_alone, holds_no_question};
pub use input::Input;

/// How the reason of a build begins that a person stopped.
pub(crate) const STOP_REQUESTED: &str = "stop requested";
/// How the reason of a build begins whose working time is used up.
const TIME_LIMIT: &str = "time limit";

/// How far a build has come, with what belongs to that.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Approved, not begun.
    Queued,
    /// Its ground is being laid.
    Priming,
    /// Its tasks run.
    Running,
    /// It stands still.
    Paused {
        /// Why.
        why: PauseReason,
    },
    /// The whole-build check runs.
    Verifying,
    /// Everything landed or was left out by a decision, and the whole-build check passed.
    Succeeded {
        /// When.
        at: DateTime<Utc>,
    },
    /// It ended without reaching its goal.
    Failed {
        /// When.
        at: DateTime<Utc>,
    },
    /// It was stopped.
    Stopped {
        /// Why.
        why: StopCause,
        /// When its last attempt had ended; none while one still runs.
        at: Option<DateTime<Utc>>,
    },
}

impl State {
    /// Reads the state of a record.
    pub fn of(build: &Build) -> Self {
        let at = build.completed_at;
        match build.state {
            BuildState::Queued => Self::Queued,
            BuildState::Priming => Self::Priming,
            BuildState::Running => Self::Running,
            BuildState::Paused => Self::Paused {
                why: build.pause_reason.unwrap_or(PauseReason::Person),
            },
            BuildState::Verifying => Self::Verifying,
            BuildState::Succeeded => Self::Succeeded {
                at: at.unwrap_or_default(),
            },
            BuildState::Failed => Self::Failed {
                at: at.unwrap_or_default(),
            },
            BuildState::Stopped => Self::Stopped {
                why: build.stop.unwrap_or_else(|| cause_of(build)),
                at,
            },
        }
    }

    /// Writes the state into a record, in place of the one that it held.
    pub fn write(self, build: &mut Build) {
        build.state = self.written();
        build.pause_reason = None;
        build.stop = None;
        build.completed_at = None;
        match self {
            Self::Queued | Self::Priming | Self::Running | Self::Verifying => {}
            Self::Paused { why } => build.pause_reason = Some(why),
            Self::Succeeded { at } | Self::Failed { at } => build.completed_at = Some(at),
            Self::Stopped { why, at } => {
                build.stop = Some(why);
                build.completed_at = at;
            }
        }
    }

    /// Returns the name of the state in the record.
    pub const fn written(&self) -> BuildState {
        match self {
            Self::Queued => BuildState::Queued,
            Self::Priming => BuildState::Priming,
            Self::Running => BuildState::Running,
            Self::Paused { .. } => BuildState::Paused,
            Self::Verifying => BuildState::Verifying,
            Self::Succeeded { .. } => BuildState::Succeeded,
            Self::Failed { .. } => BuildState::Failed,
            Self::Stopped { .. } => BuildState::Stopped,
        }
    }
}

/// Stores of before named the cause in words alone.
fn cause_of(build: &Build) -> StopCause {
    let reason = build.reason.as_deref().unwrap_or_default();
    if reason.starts_with(STOP_REQUESTED) {
        StopCause::Person
    } else if reason.starts_with(TIME_LIMIT) {
        StopCause::WorkingTime
    } else {
        StopCause::Failures
    }
}
