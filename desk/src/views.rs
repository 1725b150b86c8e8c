//! What each `list` and `show` gives: a view's fields are exactly what `--json` prints.

pub mod agent;
pub mod alert;
pub mod build;
pub mod dead_letter;
pub mod event;
pub mod idea;
pub mod knowledge;
pub mod lines;
pub mod lock;
pub mod metrics;
pub mod notice;
pub mod question;
pub mod review;
pub mod specification;
pub mod task;
pub mod trace;
pub mod transcript;
pub mod usage;
pub mod wait;
pub mod why;

use chrono::{DateTime, Utc};
use ropewalk_store::{Query, Versioned};

/// How many ideas or builds a page of them shows.
const PAGE: u32 = 50;
/// The most keys that one query names: databases bound how many values a statement has.
const AT_ONCE: usize = 500;

/// A span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// At this moment or later.
    pub since: Option<DateTime<Utc>>,
    /// Before this moment.
    pub until: Option<DateTime<Utc>>,
}

impl Span {
    /// Leaves only what `column`, a time, says lies within.
    fn within(self, column: &str, mut query: Query) -> Query {
        if let Some(since) = self.since {
            query = query.at_least(column, since.timestamp_millis());
        }
        if let Some(until) = self.until {
            query = query.at_most(column, until.timestamp_millis().saturating_sub(1));
        }
        query
    }
}

/// Returns whether each of these words stands in one of `texts`, whatever letters are capitals.
fn bears(words: &str, texts: &[&str]) -> bool {
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let words = words.to_lowercase();
    let mut words = words.split_whitespace();
    words.all(|word| texts.iter().any(|text| text.contains(word)))
}

/// Returns how many pages of `size` entries so many have.
fn pages(all: u64, size: u32) -> u32 {
    u32::try_from(all.div_ceil(u64::from(size))).unwrap_or(u32::MAX)
}

pub(crate) fn records<R>(rows: Vec<Versioned<R>>) -> Vec<R> {
    rows.into_iter().map(|row| row.record).collect()
}
