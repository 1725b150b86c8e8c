//! Takes times and rates.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Times of single runs.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the times of another.
    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the value that `percent` of the runs stay below.
    pub(crate) fn percentile(&self, percent: usize) -> Result<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().context("nothing was timed")
    }

    /// Returns a percentile in milliseconds.
    pub(crate) fn millis(&self, percent: usize) -> Result<f64> {
        Ok(millis(self.percentile(percent)?))
    }
}

/// Returns a time in milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Returns a count as a number to reckon with.
pub(crate) fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}

/// Counts what was done in a stretch of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) done: usize,
    pub(crate) time: Duration,
}

impl Rate {
    pub(crate) fn since(begun: Instant, done: usize) -> Self {
        Self {
            done,
            time: begun.elapsed(),
        }
    }

    pub(crate) fn per_second(self) -> f64 {
        count(self.done) / self.time.as_secs_f64()
    }

    /// Joins the stretches before and after something else, so that a change of the machine's load shows on both sides.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            time: self.time + other.time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_come_from_the_sorted_times() {
        let mut times = Times::default();
        for number in (1..=100).rev() {
            times.add(Duration::from_millis(number));
        }
        assert_eq!(times.percentile(50).unwrap(), Duration::from_millis(51));
        assert_eq!(times.percentile(100).unwrap(), Duration::from_millis(100));
        assert!(Times::default().percentile(50).is_err());
    }
}
