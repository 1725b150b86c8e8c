//! Lets those who are waited for look at a tree before those who only tidy up.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Says how many looks are taken that somebody waits for; shared by all checkouts of a clone.
#[derive(Debug, Default)]
pub(crate) struct RightOfWay {
    taken: Mutex<usize>,
    free: Condvar,
}

/// Has the right of way until it is dropped.
#[derive(Debug)]
pub(crate) struct RightOfWayGuard<'a>(&'a RightOfWay);

impl RightOfWay {
    /// Takes the right of way; several may have it.
    pub(crate) fn take(&self) -> RightOfWayGuard<'_> {
        *self.count() += 1;
        RightOfWayGuard(self)
    }

    /// Blocks the thread while somebody has the right of way, but not beyond `until`.
    pub(crate) fn give(&self, until: Instant) {
        let patience = until.saturating_duration_since(Instant::now());
        let waited = self
            .free
            .wait_timeout_while(self.count(), patience, |taken| *taken > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RightOfWayGuard<'_> {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.free.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_gives_way_goes_on_when_all_have_passed() {
        let way = RightOfWay::default();
        let (told, seen) = mpsc::channel();
        thread::scope(|scope| {
            let (first, second) = (way.take(), way.take());
            scope.spawn(|| {
                way.give(Instant::now() + Duration::from_hours(1));
                told.send("passed").ok();
            });
            drop(first);
            assert!(seen.recv_timeout(Duration::from_millis(50)).is_err());
            drop(second);
            assert_eq!(seen.recv(), Ok("passed"));
        });
    }

    #[test]
    fn who_has_waited_long_enough_goes_on() {
        let way = RightOfWay::default();
        let _taken = way.take();
        way.give(Instant::now());
    }
}
