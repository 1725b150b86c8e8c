//! Says of builds in whose state something works on them that nothing does, where no process runs.

use ropewalk_schemas::build::{Build, BuildState};
use serde::Serialize;

/// How it stands with a build that nothing works on.
pub(super) const NOTHING_RUNS: &str = "nothing runs";
/// How that ends.
pub(super) const GOES_ON: &str = "the build goes on when `ropewalk up` is started";

/// What is shown of a build, and that nothing works on it, where that is so.
#[derive(Debug, Serialize)]
pub(super) struct AttendedBuild<T> {
    #[serde(flatten)]
    pub(super) shown: T,
    /// That nothing works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) standing: Option<&'static str>,
    /// How it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
}

impl<T> AttendedBuild<T> {
    /// Adds to `shown` how it stands with its build; `runs` says whether any process does.
    pub(super) fn of(shown: T, build: impl FnOnce(&T) -> &Build, runs: bool) -> Self {
        let is_asleep = !runs && is_worked_on(build(&shown).state);
        Self {
            shown,
            standing: is_asleep.then_some(NOTHING_RUNS),
            next: is_asleep.then_some(GOES_ON),
        }
    }

    /// Says why the build stands as it does: since nothing runs, else for the reason `own`.
    pub(super) fn why(&self, own: Option<String>) -> Option<String> {
        match (self.standing, self.next) {
            (Some(standing), Some(next)) => Some(format!("{standing}; {next}")),
            _ => own,
        }
    }
}

/// Returns whether processes work on a build in this state, so that it stands still without any.
const fn is_worked_on(state: BuildState) -> bool {
    match state {
        BuildState::Queued | BuildState::Priming | BuildState::Running | BuildState::Verifying => {
            true
        }
        BuildState::Paused | BuildState::Succeeded | BuildState::Failed | BuildState::Stopped => {
            false
        }
    }
}
