//! Says when it is time to count again, and when what cannot be counted is held against a command.

use std::time::{Duration, Instant};

/// How often it is counted where nothing looks like too much.
const COUNT_PERIOD: Duration = Duration::from_secs(1);
/// The time between two such counts, in times of how long the last one took: a twentieth of a processor at most.
const SHARE: u32 = 20;
/// How long something is hidden until it counts as much as may lie there: tests close a directory for a moment.
const PATIENCE: Duration = Duration::from_secs(2);

/// When it was counted last, and how long that took.
pub(super) struct Pace {
    counted: Instant,
    took: Duration,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            counted: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// Says that it is time: soon after the last count where it seems too much, else now and then.
    pub(super) fn is_due(&self, seems_too_much: bool) -> bool {
        let pause = if seems_too_much {
            self.took
        } else {
            COUNT_PERIOD.max(self.took * SHARE)
        };
        self.counted.elapsed() >= pause
    }

    /// Notes a count that began at `begun` and has just ended.
    pub(super) fn counted(&mut self, begun: Instant) {
        self.counted = Instant::now();
        self.took = begun.elapsed();
    }
}

/// Since when not everything can be counted.
#[derive(Default)]
pub(super) struct BlindSpot(Option<Instant>);

impl BlindSpot {
    /// Takes what a count said of it; returns whether that has been so in every count for longer than is by chance.
    pub(super) fn lasts(&mut self, is_unseen: bool) -> bool {
        if !is_unseen {
            self.0 = None;
            return false;
        }
        self.0.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_hidden_is_held_against_a_command() {
        let long_ago = || BlindSpot(Instant::now().checked_sub(PATIENCE));
        assert!(!BlindSpot::default().lasts(true));
        assert!(long_ago().lasts(true));
        let mut spot = long_ago();
        assert!(!spot.lasts(false));
        assert!(!spot.lasts(true));
    }

    #[test]
    fn what_seems_too_much_is_counted_soon() {
        let pace = |took| Pace {
            counted: Instant::now(),
            took,
        };
        assert!(pace(Duration::ZERO).is_due(true));
        assert!(!pace(Duration::ZERO).is_due(false));
        assert!(!pace(Duration::from_hours(1)).is_due(true));
    }
}
