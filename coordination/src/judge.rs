//! Judges which leases their holders have stopped to renew. Pure.
//!
//! The judge trusts its own clock only: a lease is dead when its renewal counter was seen unchanged for a whole time to
//! live. A live holder renews at a third of that and is never judged; a frozen one is, and its late landing is fenced.

use std::collections::HashMap;
use std::time::Duration;

use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{Versioned, path_key};

/// Remembers since when each lease stands still.
#[derive(Debug, Clone, Default)]
pub struct Judge {
    seen: HashMap<String, Sighting>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Sighting {
    token: i64,
    renewals: u64,
    since: Duration,
}

impl Judge {
    /// Returns a judge that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at all leases and answers those that are dead.
    ///
    /// `now` is a monotonic time that goes on while the machine sleeps, from any beginning. Between two looks no more
    /// than a fraction of a time to live should pass; a longer gap only delays the judgement.
    pub fn observe<'a>(
        &mut self,
        leases: &'a [Versioned<Lease>],
        now: Duration,
    ) -> Vec<&'a Versioned<Lease>> {
        let before = std::mem::take(&mut self.seen);
        let mut dead = Vec::new();
        for lease in leases {
            if lease.state != LeaseState::Granted {
                continue;
            }
            let key = path_key(&lease.path);
            let fresh = Sighting {
                token: lease.token,
                renewals: lease.renewals,
                since: now,
            };
            let seen = match before.get(&key) {
                Some(seen) if (seen.token, seen.renewals) == (lease.token, lease.renewals) => *seen,
                _ => fresh,
            };
            if now.saturating_sub(seen.since) >= Duration::from_millis(lease.ttl_ms) {
                dead.push(lease);
            }
            self.seen.insert(key, seen);
        }
        dead
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use ropewalk_schemas::lease::Holder;
    use ropewalk_schemas::{ComponentName, RepoPath, TaskId};
    use uuid::Uuid;

    use super::*;

    fn lease(token: i64, renewals: u64, state: LeaseState) -> Versioned<Lease> {
        Versioned {
            version: 1,
            record: Lease {
                path: RepoPath::parse("src/lib.rs").unwrap(),
                holder: Holder {
                    build: Uuid::from_u128(1).into(),
                    task: TaskId::parse("T-001").unwrap(),
                    attempt: Uuid::from_u128(2).into(),
                    loop_name: ComponentName::parse("loop-1").unwrap(),
                },
                state,
                token,
                renewals,
                ttl_ms: 300,
                reason: "T-001".to_owned(),
                granted_at: DateTime::UNIX_EPOCH,
            },
        }
    }

    fn dead(judge: &mut Judge, lease: Versioned<Lease>, now_ms: u64) -> bool {
        !judge
            .observe(&[lease], Duration::from_millis(now_ms))
            .is_empty()
    }

    #[test]
    fn a_lease_is_dead_when_it_stood_still_for_a_whole_time_to_live() {
        let mut judge = Judge::new();
        let granted = |renewals| lease(1, renewals, LeaseState::Granted);
        // Whenever the judge begins to look, the time begins then.
        let steps = [
            (0, 1_000, false),
            (0, 1_299, false),
            (1, 1_310, false),
            (1, 1_609, false),
            (1, 1_610, true),
            // Still dead until somebody expires it.
            (1, 1_611, true),
        ];
        for (renewals, now, expected) in steps {
            assert_eq!(dead(&mut judge, granted(renewals), now), expected, "{now}");
        }
    }

    #[test]
    fn a_new_grant_and_an_ended_lease_begin_anew() {
        let mut judge = Judge::new();
        assert!(!dead(&mut judge, lease(1, 0, LeaseState::Granted), 0));
        assert!(!dead(&mut judge, lease(2, 0, LeaseState::Granted), 300));
        assert!(!dead(&mut judge, lease(2, 0, LeaseState::Released), 700));
        assert!(!dead(&mut judge, lease(3, 0, LeaseState::Granted), 800));
        assert!(dead(&mut judge, lease(3, 0, LeaseState::Granted), 1_100));
    }
}
