//! Computes how long to wait before trying again.

use std::time::Duration;

/// Describes exponential back-off with full jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The ceiling of the first wait.
    pub base: Duration,
    /// The ceiling of any wait.
    pub cap: Duration,
}

impl Backoff {
    /// Returns the wait before try number `attempt + 1`, given that `attempt` tries (from 1) have failed.
    ///
    /// `random` is a fraction in `0.0..1.0`; the wait lies between zero and `base * 2^(attempt - 1)`, at most `cap`.
    pub fn full_jitter(&self, attempt: u32, random: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let ceiling = self.base.saturating_mul(1 << doublings).min(self.cap);
        ceiling.mul_f64(random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(30),
        };
        let cases = [(0, 1), (1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (40, 30)];
        for (attempt, ceiling_seconds) in cases {
            assert_eq!(
                backoff.full_jitter(attempt, 1.0),
                Duration::from_secs(ceiling_seconds),
                "{attempt}"
            );
        }
        assert_eq!(backoff.full_jitter(3, 0.0), Duration::ZERO);
    }
}
