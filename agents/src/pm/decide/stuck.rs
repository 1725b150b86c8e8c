//! Decides what to do about a task that has stopped moving.

use std::time::Duration;

/// How long a stuck task is watched, in working time since its last progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StuckLimits {
    /// Between two looks.
    pub watch_every: Duration,
    /// Until a person is asked.
    pub ask_after: Duration,
    /// Until the attempt is ended.
    pub interrupt_after: Duration,
}

/// What PM does about a task that has stopped moving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StuckAction {
    /// Look again after this long.
    Watch {
        /// Until the next look.
        again_after: Duration,
    },
    /// Ask a person: wait, skip or retry; and look again after this long.
    Ask {
        /// Until the attempt is ended.
        again_after: Duration,
    },
    /// End the attempt and keep its work; a person is asked, and the next task goes on.
    Interrupt,
}

/// Decides from the working time since the task last made progress, or since a person said to wait.
pub fn stuck(idle: Duration, limits: &StuckLimits) -> StuckAction {
    if idle >= limits.interrupt_after {
        StuckAction::Interrupt
    } else if idle >= limits.ask_after {
        StuckAction::Ask {
            again_after: limits.interrupt_after.saturating_sub(idle),
        }
    } else {
        StuckAction::Watch {
            again_after: limits
                .watch_every
                .min(limits.ask_after.saturating_sub(idle)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stuck_task_is_watched_asked_about_and_ended() {
        let limits = StuckLimits {
            watch_every: Duration::from_mins(5),
            ask_after: Duration::from_mins(20),
            interrupt_after: Duration::from_mins(30),
        };
        let minutes = Duration::from_mins;
        let watch = |again_after| StuckAction::Watch { again_after };
        let ask = |again_after| StuckAction::Ask { again_after };
        let rows = [
            (0, watch(minutes(5))),
            (10 * 60, watch(minutes(5))),
            (18 * 60, watch(minutes(2))),
            (20 * 60 - 1, watch(Duration::from_secs(1))),
            (20 * 60, ask(minutes(10))),
            (30 * 60 - 1, ask(Duration::from_secs(1))),
            (30 * 60, StuckAction::Interrupt),
            (300 * 60, StuckAction::Interrupt),
        ];
        for (seconds, expected) in rows {
            assert_eq!(
                stuck(Duration::from_secs(seconds), &limits),
                expected,
                "{seconds}"
            );
        }
    }
}
