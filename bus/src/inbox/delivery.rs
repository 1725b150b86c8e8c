//! One delivery in the hands of its subscriber, and how it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use ropewalk_runtime::{Backoff, secrets};
use ropewalk_schemas::Event;
use ropewalk_schemas::advice::Words;
use ropewalk_store::{ChangeSet, CommitError, CommitOutcome, DeliveryKey, Outcome};
use tracing::warn;

use super::Context;
use crate::hub::SubscriberQueue;

/// Says how the handling of a delivery failed; the kind decides what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may succeed later: tried again after a back-off, at most the bus's number of tries.
    Transient(String),
    /// What it needs is away: tried again after this pause, and this try does not count.
    Postponed {
        /// How long to wait.
        after: Duration,
        /// What it waits for.
        reason: String,
    },
    /// It will never succeed: goes to the dead letters at once.
    Permanent(String),
}

/// Holds a delivery: while it lives, nothing else of its entity is handed out.
#[derive(Debug)]
pub(crate) struct Claim {
    shared: Arc<SubscriberQueue>,
    context: Arc<Context>,
    key: DeliveryKey,
    attempts: u32,
    over: AtomicBool,
}

impl Claim {
    pub(crate) fn new(
        shared: Arc<SubscriberQueue>,
        context: Arc<Context>,
        sequence: i64,
        attempts: u32,
    ) -> Self {
        let key = DeliveryKey {
            sequence,
            subscriber: shared.subscriber.clone(),
        };
        Self {
            shared,
            context,
            key,
            attempts,
            over: AtomicBool::new(false),
        }
    }

    pub(crate) fn key(&self) -> &DeliveryKey {
        &self.key
    }

    /// Has the store give the delivery to this process, where others could handle it too; answers whether it did.
    pub(crate) async fn secure(&mut self) -> bool {
        let Some(shares) = self.context.shares.clone() else {
            return true;
        };
        match shares.take(&self.key).await {
            Ok(Some(attempts)) => {
                self.attempts = attempts;
                true
            }
            Ok(None) => {
                let until = self.context.clock.now() + shares.claim_lasts;
                self.end(|queue| queue.contest(self.key.sequence, self.attempts, until));
                false
            }
            Err(problem) => {
                warn!(
                    "cannot claim delivery `{}`: {}",
                    self.key,
                    Words::of(&problem)
                );
                self.put_back_later();
                false
            }
        }
    }

    /// Commits what closes the row; the delivery is over when that succeeds or somebody else closed it.
    pub(crate) async fn commit(&self, changes: ChangeSet) -> Result<CommitOutcome, CommitError> {
        let result = self.context.store.commit(changes).await;
        let over = match &result {
            Ok(_) => true,
            Err(CommitError::Closed {
                sequence,
                subscriber,
            }) => *sequence == self.key.sequence && *subscriber == self.key.subscriber,
            Err(_) => false,
        };
        if over {
            self.end(|queue| queue.settle(self.key.sequence));
            self.acknowledge().await;
        }
        result
    }

    async fn retry(
        &self,
        changes: ChangeSet,
        attempts: u32,
        due: DateTime<Utc>,
    ) -> Result<(), CommitError> {
        let result = self.context.store.commit(changes).await;
        match &result {
            Ok(_) => {
                self.end(|queue| queue.put_back(self.key.sequence, attempts, Some(due)));
            }
            Err(CommitError::Closed { .. }) => {
                self.end(|queue| queue.settle(self.key.sequence));
            }
            Err(_) => {
                self.put_back_later();
                return result.map(drop);
            }
        }
        self.acknowledge().await;
        result.map(drop)
    }

    /// Gives the delivery back uncounted, to be handed out again at once.
    fn put_back_now(&self) {
        self.end(|queue| queue.put_back(self.key.sequence, self.attempts, None));
    }

    /// Gives the delivery back uncounted, after a pause, so that a broken handler or store is not spun on.
    pub(crate) fn put_back_later(&self) {
        let due = self.due_after(self.attempts + 1, 1.0);
        self.end(|queue| queue.put_back(self.key.sequence, self.attempts, Some(due)));
    }

    fn due_after(&self, failed_tries: u32, random: f64) -> DateTime<Utc> {
        due_after(
            self.context.clock.now(),
            self.context.backoff,
            failed_tries,
            random,
        )
    }

    fn end(&self, change: impl FnOnce(&mut super::queue::Queue)) {
        if !self.over.swap(true, Ordering::SeqCst) {
            change(&mut self.shared.queue());
            if let Some(shares) = &self.context.shares {
                shares.let_go(&self.key);
            }
            self.shared.changed.notify_one();
            self.context.hub.ease();
        }
    }

    async fn acknowledge(&self) {
        let transport = &self.context.transport;
        transport
            .settled(&self.key.subscriber, self.key.sequence)
            .await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.over.load(Ordering::SeqCst) {
            self.put_back_later();
        }
    }
}

/// One event for one subscriber, to be handled and then settled by one of its methods.
///
/// Dropped without that, it is handed out again after a pause, uncounted.
#[derive(Debug)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// The number of this try, from 1.
    pub attempt: u32,
    claim: Claim,
}

impl Delivery {
    pub(crate) fn new(event: Event, claim: Claim) -> Self {
        Self {
            event,
            attempt: claim.attempts + 1,
            claim,
        }
    }

    /// Returns the key of the delivery row.
    pub fn key(&self) -> &DeliveryKey {
        &self.claim.key
    }

    /// Commits the effects of the handling and closes the delivery in one transaction.
    ///
    /// After an error other than `Closed` nothing is written and the delivery stays claimed: load again, decide again
    /// and call this again, or [`Delivery::fail`] it.
    pub async fn finish(&mut self, mut changes: ChangeSet) -> Result<CommitOutcome, CommitError> {
        changes.close(&self.claim.key, Outcome::Done);
        self.claim.commit(changes).await
    }

    /// Stores the failure: to be tried again after a back-off, or as a dead letter.
    ///
    /// Answers what was stored. After an error nothing is; the delivery is handed out again after a pause.
    pub async fn fail(self, failure: Failure) -> Result<Outcome, CommitError> {
        let now = self.claim.context.clock.now();
        let outcome = after_failure(
            failure,
            self.claim.attempts + 1,
            self.claim.context.tries,
            now,
            |failed_tries| {
                let random = self.claim.context.ids.fraction();
                self.claim.due_after(failed_tries, random)
            },
        );
        let mut changes = ChangeSet::new();
        changes.close(&self.claim.key, outcome.clone());
        match &outcome {
            Outcome::Retry { due, error } => {
                let attempts = self.claim.attempts + 1;
                self.claim.retry(changes, attempts, *due).await?;
                warn!(
                    bus.delivery = %self.claim.key,
                    "delivery `{}` failed and is tried again: {error}", self.claim.key
                );
            }
            Outcome::Postponed { due, .. } => {
                let attempts = self.claim.attempts;
                self.claim.retry(changes, attempts, *due).await?;
            }
            Outcome::Dead { error } => {
                self.claim.commit(changes).await?;
                warn!(
                    bus.delivery = %self.claim.key,
                    "delivery `{}` went to the dead letters: {error}", self.claim.key
                );
            }
            _ => {
                self.claim.commit(changes).await?;
            }
        }
        Ok(outcome)
    }

    /// Gives the delivery back uncounted, as at a shutdown.
    pub fn release(self) {
        self.claim.put_back_now();
    }
}

/// Decides what follows the failure of try number `failed_tries` of at most `tries`.
fn after_failure(
    failure: Failure,
    failed_tries: u32,
    tries: u32,
    now: DateTime<Utc>,
    due: impl FnOnce(u32) -> DateTime<Utc>,
) -> Outcome {
    // What a handler says of its failure is kept, and shown to whoever looks.
    let struck = |words: String| secrets::strike(&words).into_owned();
    match failure {
        Failure::Postponed { after, reason } => Outcome::Postponed {
            due: later(now, after),
            reason: struck(reason),
        },
        Failure::Transient(error) if failed_tries < tries => Outcome::Retry {
            due: due(failed_tries),
            error: struck(error),
        },
        Failure::Transient(error) | Failure::Permanent(error) => Outcome::Dead {
            error: struck(error),
        },
    }
}

fn due_after(
    now: DateTime<Utc>,
    backoff: Backoff,
    failed_tries: u32,
    random: f64,
) -> DateTime<Utc> {
    later(now, backoff.full_jitter(failed_tries, random))
}

fn later(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(wait)
        .ok()
        .and_then(|wait| now.checked_add_signed(wait))
        .unwrap_or(now)
        // The store keeps milliseconds; what waits here must not wait longer than what is written there.
        .trunc_subsecs(3)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_try_and_a_permanent_failure_end_in_the_dead_letters() {
        let due = DateTime::UNIX_EPOCH + TimeDelta::seconds(7);
        let retry = Outcome::Retry {
            due,
            error: "e".to_owned(),
        };
        let dead = Outcome::Dead {
            error: "e".to_owned(),
        };
        let transient = || Failure::Transient("e".to_owned());
        let permanent = || Failure::Permanent("e".to_owned());
        let postponed = |seconds| Failure::Postponed {
            after: Duration::from_secs(seconds),
            reason: "away".to_owned(),
        };
        let put_off = Outcome::Postponed {
            due,
            reason: "away".to_owned(),
        };
        let cases = [
            (postponed(7), 1, put_off.clone()),
            (postponed(7), 6, put_off),
            (transient(), 1, retry.clone()),
            (transient(), 4, retry),
            (transient(), 5, dead.clone()),
            (transient(), 6, dead.clone()),
            (permanent(), 1, dead),
        ];
        for (failure, failed_tries, expected) in cases {
            let shown = format!("{failure:?} {failed_tries}");
            assert_eq!(
                after_failure(failure, failed_tries, 5, DateTime::UNIX_EPOCH, |_| due),
                expected,
                "{shown}"
            );
        }
    }

    #[test]
    fn the_wait_grows_with_full_jitter() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(30),
        };
        let start = DateTime::UNIX_EPOCH;
        let cases = [(1, 0.0, 0), (1, 1.0, 1), (3, 0.5, 2), (9, 1.0, 30)];
        for (failed_tries, random, seconds) in cases {
            assert_eq!(
                due_after(start, backoff, failed_tries, random),
                start + TimeDelta::seconds(seconds)
            );
        }
    }
}
