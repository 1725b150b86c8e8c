//! Remembers what happened to the broker's streams and consumers that somebody should know.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use tracing::warn;

/// How many notices are remembered; the oldest go first.
const REMEMBERED: usize = 100;

/// Something about the broker that somebody should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// When it happened.
    pub at: DateTime<Utc>,
    /// What kind of thing it is.
    pub kind: NoticeKind,
    /// What happened.
    pub text: String,
}

/// Kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The broker said it; it keeps such messages in a stream.
    Advisory,
    /// The stream dropped events before their time.
    Discarded,
    /// A consumer had messages, handed none out, and was made anew.
    SilentConsumer,
}

/// The latest notices of a process.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<VecDeque<Notice>>);

impl Notices {
    /// Remembers a notice and writes it to the log.
    pub(super) fn add(&self, notice: Notice) {
        warn!("NATS: {}", notice.text);
        let mut notices = self.lock();
        if notices.len() >= REMEMBERED {
            notices.pop_front();
        }
        notices.push_back(notice);
    }

    /// Returns what is remembered, the oldest first.
    pub(super) fn list(&self) -> Vec<Notice> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Notice>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_notices_make_room() {
        let notices = Notices::default();
        for number in 0..REMEMBERED + 2 {
            notices.add(Notice {
                at: DateTime::UNIX_EPOCH,
                kind: NoticeKind::Discarded,
                text: number.to_string(),
            });
        }
        let kept = notices.list();
        assert_eq!(kept.len(), REMEMBERED);
        assert_eq!(kept.first().map(|notice| notice.text.as_str()), Some("2"));
    }
}
