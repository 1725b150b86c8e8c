//! Makes sortable ids (uuid version 7).

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::{Builder, Uuid};

use crate::clock::Clock;

/// Makes uuid v7 ids from a clock and a random source.
///
/// Ids of one source sort in the order they were made, within one process.
#[derive(Debug, Clone)]
pub struct Ids {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    random: StdRng,
    last: (u64, u16),
}

impl Ids {
    /// Returns a source seeded by the operating system.
    pub fn system(clock: Clock) -> Self {
        Self::with(rand::make_rng(), clock)
    }

    /// Returns a source that makes the same ids for the same seed and clock.
    pub fn seeded(seed: u64, clock: Clock) -> Self {
        Self::with(StdRng::seed_from_u64(seed), clock)
    }

    fn with(random: StdRng, clock: Clock) -> Self {
        Self {
            clock,
            state: Arc::new(Mutex::new(State {
                random,
                last: (0, 0),
            })),
        }
    }

    /// Returns the next id; never the same twice.
    pub fn next(&self) -> Uuid {
        let now = u64::try_from(self.clock.now().timestamp_millis()).unwrap_or(0);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (millis, counter) = successor(state.last, now);
        state.last = (millis, counter);
        let mut random = [0_u8; 10];
        state.random.fill_bytes(&mut random);
        // The 12 bits after the version hold a counter, so that ids of one millisecond keep their order.
        let [high, low] = counter.to_be_bytes();
        random[0] = high;
        random[1] = low;
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// Returns a random fraction in `0.0..1.0`, for jitter.
    pub fn fraction(&self) -> f64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bits = u32::try_from(state.random.next_u64() >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Returns the (millisecond, counter) after `last`: never backwards, even when the clock is.
fn successor(last: (u64, u16), now: u64) -> (u64, u16) {
    const COUNTER_MAX: u16 = 0x0fff;
    if now > last.0 {
        (now, 0)
    } else if last.1 < COUNTER_MAX {
        (last.0, last.1 + 1)
    } else {
        (last.0 + 1, 0)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn ids_of_one_millisecond_keep_their_order() {
        let ids = Ids::seeded(7, Clock::manual(DateTime::UNIX_EPOCH));
        let made: Vec<Uuid> = (0..10_000).map(|_| ids.next()).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn the_same_seed_makes_the_same_ids() {
        let first = Ids::seeded(1, Clock::manual(DateTime::UNIX_EPOCH));
        let second = Ids::seeded(1, Clock::manual(DateTime::UNIX_EPOCH));
        assert_eq!(first.next(), second.next());
    }

    #[test]
    fn a_clock_that_steps_back_makes_no_smaller_id() {
        let cases = [
            ((5, 0), 6, (6, 0)),
            ((5, 0), 3, (5, 1)),
            ((5, 0x0fff), 5, (6, 0)),
        ];
        for (last, now, expected) in cases {
            assert_eq!(successor(last, now), expected);
        }
    }
}
