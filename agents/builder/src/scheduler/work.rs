//! Names what is done for builds beside their tasks, as the counts of deaths and failures know it.

use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::{Suspects, times};
use ropewalk_schemas::BuildId;
use ropewalk_schemas::deaths::Deaths;
use ropewalk_store::{ChangeSet, ReadError};

/// What is done for a build beside its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// Its ground is laid.
    Ground,
    /// The whole of it is checked.
    Check,
    /// What a person wants of its branch is done.
    Wish,
    /// Its branch follows its head.
    Publication,
    /// Its next step is taken, which is read and written in the store alone.
    Settlement,
}

impl Work {
    const ALL: [Self; 5] = [
        Self::Ground,
        Self::Check,
        Self::Wish,
        Self::Publication,
        Self::Settlement,
    ];

    /// What the program can die of: all but what the store alone is read and written for.
    pub(crate) const IN_HAND: [Self; 4] =
        [Self::Ground, Self::Check, Self::Wish, Self::Publication];

    /// Returns the written form.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ground => "ground",
            Self::Check => "check",
            Self::Wish => "wish",
            Self::Publication => "publication",
            Self::Settlement => "settlement",
        }
    }

    /// Says what was under way.
    const fn in_words(self) -> &'static str {
        match self {
            Self::Ground => "laying the ground of the build",
            Self::Check => "checking the build as a whole",
            Self::Wish => "doing what is wanted of the branch",
            Self::Publication => "publishing the branch",
            Self::Settlement => "looking after the build",
        }
    }

    /// Says that it failed so often in a row.
    pub(super) fn failed(self, count: u32, error: &str) -> String {
        let (what, often) = (self.in_words(), times(count));
        format!("{what} failed {often} in a row and is tried again: {error}")
    }

    /// Says that the program died of it so often in a row.
    pub(super) fn died(self, count: u32) -> String {
        let (what, often) = (self.in_words(), times(count));
        format!(
            "the program ended {often} in a row while it was {what}; a command of the gate, or what git runs there, may \
             end whatever runs it"
        )
    }

    /// Names it as the counts of deaths do.
    pub(super) fn suspect(self, build: BuildId) -> String {
        Suspects::work(build, self.as_str())
    }

    /// Returns the work that a suspect names.
    pub(super) fn of(suspect: &str) -> Option<(BuildId, Self)> {
        let (build, what) = suspect.strip_prefix("build/")?.split_once('/')?;
        Some((build.parse().ok()?, Self::parse(what)?))
    }

    /// Reads the written form; none of work that this program does not know.
    pub(super) fn parse(written: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.as_str() == written)
    }
}

/// Has the deaths of `works` on a build forgotten, so that what a person wants done again is counted anew. The scheduler of each
/// process sees that at its next look.
pub(crate) async fn count_anew(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    works: &[Work],
) -> Result<(), ReadError> {
    for work in works {
        let suspect = work.suspect(build);
        if let Some(row) = context.store.get::<Deaths>(&suspect).await? {
            changes.delete(&row);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspect_names_its_build_and_its_work() {
        let build = BuildId(uuid::Uuid::from_u128(7));
        for work in Work::ALL {
            assert_eq!(Work::of(&work.suspect(build)), Some((build, work)));
        }
        for other in ["build/7", "build/x/check", "task/x/T-1", "delivery/7/pm"] {
            assert_eq!(Work::of(other), None, "{other}");
        }
    }
}
