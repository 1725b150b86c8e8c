//! Decides what is left to try of a build that ended without success.

use ropewalk_schemas::build::{BuildState, TaskCounts};

/// Decides whether another round has a task to try. Where each landed or was left out, no more than the whole is checked again, which
/// helps once something outside has changed.
pub fn stands_to_be_retried(status: BuildState, counts: &TaskCounts) -> bool {
    status != BuildState::Failed || !counts.are_all_done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_round_is_for_what_failed_and_was_not_left_out() {
        let counts = |complete, failed, skipped, blocked| TaskCounts {
            total: 4,
            complete,
            failed,
            skipped,
            blocked,
        };
        let rows = [
            (BuildState::Failed, counts(0, 4, 0, 0), true),
            (BuildState::Failed, counts(1, 1, 1, 1), true),
            (BuildState::Failed, counts(3, 1, 0, 0), true),
            // It ended before some began.
            (BuildState::Failed, counts(2, 0, 1, 0), true),
            // Everything that failed was skipped.
            (BuildState::Failed, counts(3, 0, 1, 0), false),
            (BuildState::Failed, counts(0, 0, 4, 0), false),
            (BuildState::Failed, counts(4, 0, 0, 0), false),
            // Its time was over before the whole was checked.
            (BuildState::Stopped, counts(3, 0, 1, 0), true),
            (BuildState::Stopped, counts(0, 4, 0, 0), true),
        ];
        for (status, counts, expected) in rows {
            assert_eq!(
                stands_to_be_retried(status, &counts),
                expected,
                "{status} {counts:?}"
            );
        }
    }
}
