//! Tells the time, and lets a test move it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use tokio::sync::watch;

/// Tells UTC time in whole milliseconds and wakes sleepers.
///
/// Cheap to clone; all clones of a manual clock show the same time.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct Manual {
    now: Mutex<DateTime<Utc>>,
    moved: watch::Sender<()>,
}

impl Manual {
    fn now(&self) -> DateTime<Utc> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    /// Returns the clock of this machine.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Returns a clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: DateTime<Utc>) -> Self {
        let (moved, _) = watch::channel(());
        Self(Source::Manual(Arc::new(Manual {
            now: Mutex::new(start.trunc_subsecs(3)),
            moved,
        })))
    }

    /// Returns the time, cut to milliseconds so that it survives a store unchanged.
    pub fn now(&self) -> DateTime<Utc> {
        match &self.0 {
            #[expect(
                clippy::disallowed_methods,
                reason = "this is the one place that asks the system"
            )]
            Source::System => Utc::now().trunc_subsecs(3),
            Source::Manual(manual) => manual.now(),
        }
    }

    /// Moves a manual clock forward and wakes everybody whose time has come; a system clock ignores it.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(manual) = &self.0 {
            {
                let mut now = manual.now.lock().unwrap_or_else(PoisonError::into_inner);
                *now += TimeDelta::from_std(by).unwrap_or(TimeDelta::MAX);
            }
            manual.moved.send_replace(());
        }
    }

    /// Sleeps for `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(duration).await,
            Source::Manual(_) => {
                let until = self.now() + TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
                self.sleep_until(until).await;
            }
        }
    }

    /// Sleeps until `deadline`; returns at once when it has passed.
    ///
    /// The system clock is asked again every minute, so that a moved wall clock or a suspended machine
    /// neither loses a deadline nor waits for it too long.
    pub async fn sleep_until(&self, deadline: DateTime<Utc>) {
        match &self.0 {
            Source::System => {
                while let Ok(left) = (deadline - self.now()).to_std() {
                    if left.is_zero() {
                        return;
                    }
                    tokio::time::sleep(left.min(Duration::from_mins(1))).await;
                }
            }
            Source::Manual(manual) => {
                let mut moved = manual.moved.subscribe();
                while manual.now() < deadline {
                    if moved.changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn manual_clock_wakes_a_sleeper_only_when_its_time_has_come() {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let sleeper = {
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_secs(10)).await;
                clock.now()
            }
        };
        let mover = async {
            tokio::task::yield_now().await;
            clock.advance(Duration::from_secs(9));
            tokio::task::yield_now().await;
            clock.advance(Duration::from_secs(1));
        };
        let (woken_at, ()) = tokio::join!(sleeper, mover);
        assert_eq!(woken_at, DateTime::UNIX_EPOCH + TimeDelta::seconds(10));
    }

    #[tokio::test]
    async fn a_deadline_in_the_past_returns_at_once() {
        Clock::system().sleep_until(DateTime::UNIX_EPOCH).await;
    }
}
