//! Bounds how often somebody asks: so many at once, and so many a second after that.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

/// What may come at once.
const BURST: f64 = 600.0;
/// What may come each second after that.
const PER_SECOND: f64 = 300.0;
/// Wrong tokens and codes that may come at once, and one each so many seconds after that.
const WRONG_BURST: f64 = 20.0;
const WRONG_PER_SECOND: f64 = 0.2;
/// So many are told apart; beyond that those who rest longest are forgotten.
const TOLD_APART: usize = 4_096;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A request.
    Request,
    /// A token or a code that nobody has.
    Wrong,
}

/// How much everybody has asked lately.
#[derive(Debug, Default)]
pub(crate) struct Rates(HashMap<(Kind, String), Bucket>);

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: DateTime<Utc>,
}

impl Kind {
    const fn limits(self) -> (f64, f64) {
        match self {
            Self::Request => (BURST, PER_SECOND),
            Self::Wrong => (WRONG_BURST, WRONG_PER_SECOND),
        }
    }
}

impl Rates {
    /// Counts one more of `who`; says how long to wait where it was one too many.
    pub(crate) fn count(
        &mut self,
        kind: Kind,
        who: &str,
        now: DateTime<Utc>,
    ) -> Result<(), Duration> {
        self.forget(now);
        let (burst, per_second) = kind.limits();
        let bucket = self.0.entry((kind, who.to_owned())).or_insert(Bucket {
            left: burst,
            at: now,
        });
        bucket.refill(burst, per_second, now);
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.left) / per_second))
    }

    /// Says how long somebody has to wait who may not go on now, without counting.
    pub(crate) fn rests(&mut self, kind: Kind, who: &str, now: DateTime<Utc>) -> Option<Duration> {
        let (burst, per_second) = kind.limits();
        let bucket = self.0.get_mut(&(kind, who.to_owned()))?;
        bucket.refill(burst, per_second, now);
        (bucket.left < 1.0).then(|| Duration::from_secs_f64((1.0 - bucket.left) / per_second))
    }

    fn forget(&mut self, now: DateTime<Utc>) {
        if self.0.len() < TOLD_APART {
            return;
        }
        self.0.retain(|(kind, _), bucket| {
            let (burst, per_second) = kind.limits();
            bucket.refill(burst, per_second, now);
            bucket.left < burst
        });
        if self.0.len() >= TOLD_APART {
            self.0.clear();
        }
    }
}

impl Bucket {
    fn refill(&mut self, burst: f64, per_second: f64, now: DateTime<Utc>) {
        let passed = (now - self.at).to_std().unwrap_or_default();
        self.left = (self.left + passed.as_secs_f64() * per_second).min(burst);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn so_many_come_at_once_and_so_many_each_second_after_that() {
        let mut rates = Rates::default();
        let start = DateTime::UNIX_EPOCH;
        for _ in 0..20 {
            assert_eq!(rates.count(Kind::Wrong, "a", start), Ok(()));
        }
        assert_eq!(
            rates.count(Kind::Wrong, "a", start),
            Err(Duration::from_secs(5))
        );
        assert_eq!(
            rates.rests(Kind::Wrong, "a", start),
            Some(Duration::from_secs(5))
        );
        assert_eq!(rates.count(Kind::Wrong, "b", start), Ok(()));
        assert_eq!(rates.count(Kind::Request, "a", start), Ok(()));
        let later = start + TimeDelta::seconds(5);
        assert_eq!(rates.rests(Kind::Wrong, "a", later), None);
        assert_eq!(rates.count(Kind::Wrong, "a", later), Ok(()));
        assert!(rates.count(Kind::Wrong, "a", later).is_err());
    }

    #[test]
    fn who_asks_under_ever_new_names_fills_no_memory() {
        let mut rates = Rates::default();
        for number in 0..3 * TOLD_APART {
            let who = number.to_string();
            rates
                .count(Kind::Request, &who, DateTime::UNIX_EPOCH)
                .unwrap();
            assert!(rates.0.len() <= TOLD_APART);
        }
    }
}
