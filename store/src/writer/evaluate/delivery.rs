//! Decides what becomes of a delivery.

use chrono::{DateTime, Utc};
use ropewalk_schemas::clip;

use super::{Draft, FinalDelivery, LoadedDelivery};
use crate::change_set::Outcome;
use crate::deliveries::{DeliveryKey, DeliveryState};
use crate::error::CommitError;

impl Draft<'_> {
    fn delivery(&self, key: &DeliveryKey) -> Option<LoadedDelivery> {
        let written = self.own.closes.get(key).or(self.earlier.closes.get(key));
        match written {
            Some(delivery) => Some(LoadedDelivery {
                state: delivery.state,
                attempts: delivery.attempts,
            }),
            None => self.loaded.deliveries.get(key).copied(),
        }
    }

    pub(super) fn close(
        &mut self,
        key: &DeliveryKey,
        outcome: &Outcome,
    ) -> Result<(), CommitError> {
        let closed = || CommitError::Closed {
            sequence: key.sequence,
            subscriber: key.subscriber.clone(),
        };
        let delivery = self.delivery(key).ok_or_else(closed)?;
        let kept = matches!(
            delivery.state,
            DeliveryState::Dead | DeliveryState::Parked | DeliveryState::Discarded
        );
        let fits = match outcome {
            Outcome::Replay if !kept => {
                return Err(CommitError::NotDead {
                    sequence: key.sequence,
                    subscriber: key.subscriber.clone(),
                    state: delivery.state.to_string(),
                });
            }
            Outcome::Replay => true,
            Outcome::Discarded { .. } => kept || delivery.state == DeliveryState::Open,
            _ => delivery.state == DeliveryState::Open,
        };
        // One change set handles a delivery once, whatever it makes of it.
        if !fits || self.own.closes.contains_key(key) {
            return Err(closed());
        }
        let written = after(delivery.attempts, outcome, self.now);
        self.own.closes.insert(key.clone(), written);
        Ok(())
    }
}

/// Returns a delivery after an outcome.
fn after(attempts: u32, outcome: &Outcome, now: DateTime<Utc>) -> FinalDelivery {
    let tried = attempts.saturating_add(1);
    let closed = |state, attempts, error| FinalDelivery {
        state,
        attempts,
        due: now,
        error,
        closed_at: Some(now),
    };
    match outcome {
        Outcome::Done => closed(DeliveryState::Done, tried, None),
        Outcome::Dead { error } => closed(DeliveryState::Dead, tried, Some(bounded(error))),
        Outcome::Parked { reason } => {
            closed(DeliveryState::Parked, attempts, Some(bounded(reason)))
        }
        Outcome::Discarded { reason } => {
            closed(DeliveryState::Discarded, attempts, Some(bounded(reason)))
        }
        Outcome::Retry { due, error } => FinalDelivery {
            state: DeliveryState::Open,
            attempts: tried,
            due: *due,
            error: Some(bounded(error)),
            closed_at: None,
        },
        Outcome::Postponed { due, reason } => FinalDelivery {
            state: DeliveryState::Open,
            attempts,
            due: *due,
            error: Some(bounded(reason)),
            closed_at: None,
        },
        Outcome::Replay => FinalDelivery {
            state: DeliveryState::Open,
            attempts: 0,
            due: now,
            error: None,
            closed_at: None,
        },
    }
}

/// Cuts an error to 4,096 letters and drops zero bytes, which no database takes in a text.
fn bounded(error: &str) -> String {
    const LETTERS: usize = 4_096;
    clip::letters(&error.replace('\0', ""), LETTERS).into_owned()
}
