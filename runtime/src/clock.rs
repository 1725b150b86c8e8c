//! Tells the time, and lets a test move it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use nix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tracing::warn;

/// A wall clock that is this far from where it should be was moved; less is a correction, and followed.
const MOVED: TimeDelta = TimeDelta::minutes(1);

/// Tells UTC time in whole milliseconds and wakes sleepers.
///
/// When somebody moves the wall clock of the machine by more than a minute, this process keeps the time it had until it
/// is started again: deadlines must neither come days early nor days late. Cheap to clone; all clones of a manual clock
/// show the same time.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Manual(Arc<ManualClock>),
}

#[derive(Debug)]
struct ManualClock {
    now: Mutex<DateTime<Utc>>,
    moved: watch::Sender<()>,
}

impl ManualClock {
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
        Self(Source::Manual(Arc::new(ManualClock {
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
            Source::System => steady(Utc::now(), uptime()).trunc_subsecs(3),
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

/// What this process last believed: a time, and how long the machine had been up then.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Belief {
    time: DateTime<Utc>,
    uptime: Duration,
    /// How far off the wall clock was.
    moved: TimeDelta,
}

static BELIEF: Mutex<Option<Belief>> = Mutex::new(None);

/// Returns the time to believe when the wall clock shows `wall`, and remembers it.
fn steady(wall: DateTime<Utc>, uptime: Option<Duration>) -> DateTime<Utc> {
    let Some(uptime) = uptime else {
        return wall;
    };
    let mut belief = BELIEF.lock().unwrap_or_else(PoisonError::into_inner);
    let before = belief.unwrap_or(Belief {
        time: wall,
        uptime,
        moved: TimeDelta::zero(),
    });
    let now = believe(before, wall, uptime);
    let told = before.moved.abs() > MOVED;
    if now.moved.abs() > MOVED && !told {
        warn!(
            "somebody moved the clock of this machine by {} s; this process keeps its time until it is started again",
            now.moved.num_seconds()
        );
    }
    *belief = Some(now);
    now.time
}

/// Follows the wall clock unless it was moved; then time goes on as the machine stays up. Pure.
fn believe(before: Belief, wall: DateTime<Utc>, uptime: Duration) -> Belief {
    let passed = uptime.saturating_sub(before.uptime);
    let expected = before.time + TimeDelta::from_std(passed).unwrap_or(TimeDelta::MAX);
    let moved = wall - expected;
    let time = if moved.abs() > MOVED { expected } else { wall };
    Belief {
        time,
        uptime,
        moved,
    }
}

/// Returns how long the machine has been up, asleep or not.
fn uptime() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .ok()
        .map(Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_is_followed_when_corrected_and_not_when_moved() {
        let at = |seconds: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let before = Belief {
            time: at(1_000),
            uptime: Duration::from_secs(50),
            moved: TimeDelta::zero(),
        };
        // Seconds since then, what the wall clock shows, what is believed.
        let cases = [
            (0, 1_000, 1_000),
            (10, 1_010, 1_010),
            (10, 1_012, 1_012),
            (10, 1_005, 1_005),
            (10, 1_010 + 3 * 86_400, 1_010),
            (10, 1_010 - 2 * 3_600, 1_010),
            (86_400, 1_000 + 86_400, 1_000 + 86_400),
        ];
        for (passed, wall, expected) in cases {
            let uptime = before.uptime + Duration::from_secs(passed);
            let now = believe(before, at(wall), uptime);
            assert_eq!(now.time, at(expected), "{passed} s later it shows {wall}");
        }
    }

    #[test]
    fn a_moved_clock_stays_moved_and_one_that_is_put_right_again_is_followed() {
        let start = DateTime::UNIX_EPOCH;
        let mut belief = Belief {
            time: start,
            uptime: Duration::ZERO,
            moved: TimeDelta::zero(),
        };
        for second in 1..100 {
            let wall = start + TimeDelta::days(3) + TimeDelta::seconds(second);
            belief = believe(belief, wall, Duration::from_secs(second.unsigned_abs()));
            assert_eq!(belief.time, start + TimeDelta::seconds(second));
        }
        let back = start + TimeDelta::milliseconds(100_300);
        belief = believe(belief, back, Duration::from_secs(100));
        assert_eq!(belief.time, back);
    }

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
