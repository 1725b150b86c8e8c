//! Counts what was answered.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

/// How many requests were answered, by the first digit of the status.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; 6]);

impl Counters {
    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some(count) = self.0.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counts, each with its digit.
    pub(crate) fn by_digit(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.0.iter().enumerate().skip(1);
        counts.map(|(digit, count)| (digit, count.load(Ordering::Relaxed)))
    }
}
