//! Shows deliveries that were given up or could not be understood, and lets a person decide about them.

use std::sync::Arc;

use ropewalk_schemas::advice::Words;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::{CloudEvent, Subject};
use ropewalk_store::{
    ChangeSet, CommitError, DeliveryFilter, DeliveryKey, DeliveryRow, DeliveryState, Outcome,
    ReadError, Store,
};

use tracing::warn;

use crate::bus::Bus;

/// The dead and parked deliveries of a store.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    store: Store,
    bus: Option<Bus>,
}

/// A dead or parked delivery with its event.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    /// Where the delivery stands and what failed.
    pub delivery: DeliveryRow,
    /// The event.
    pub event: CloudEvent,
}

impl Bus {
    /// Returns the dead letters; replaying one wakes its subscriber.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters {
            store: self.store().clone(),
            bus: Some(self.clone()),
        }
    }
}

impl DeadLetters {
    /// Returns the dead letters of a store whose bus runs in another process; poke that one after a replay.
    pub fn new(store: Store) -> Self {
        Self { store, bus: None }
    }

    /// Lists the newest dead and parked deliveries, the newest first.
    pub async fn list(&self, limit: u32) -> Result<Vec<DeliveryRow>, ReadError> {
        let filter = DeliveryFilter {
            limit: Some(limit),
            ..newest()
        };
        self.store.deliveries(&filter).await
    }

    /// Lists the dead and parked deliveries of events about one entity, the newest first.
    pub async fn about(&self, subject: Subject) -> Result<Vec<DeliveryRow>, ReadError> {
        let filter = DeliveryFilter {
            subject: Some(subject),
            ..newest()
        };
        self.store.deliveries(&filter).await
    }

    /// Shows one dead or parked delivery with its event; `None` when it is neither.
    pub async fn show(&self, key: &DeliveryKey) -> Result<Option<DeadLetter>, ReadError> {
        let filter = DeliveryFilter {
            subscriber: Some(key.subscriber.clone()),
            states: vec![DeliveryState::Dead, DeliveryState::Parked],
            after_sequence: Some(key.sequence.saturating_sub(1)),
            limit: Some(1),
            ..DeliveryFilter::default()
        };
        let rows = self.store.deliveries(&filter).await?;
        let Some(delivery) = rows.into_iter().find(|row| row.key == *key) else {
            return Ok(None);
        };
        let stored = self.store.event(delivery.event_id).await?;
        Ok(stored.map(|stored| DeadLetter {
            delivery,
            event: Arc::unwrap_or_clone(stored.event),
        }))
    }

    /// Opens a dead or parked delivery again, with a fresh count of tries.
    pub async fn replay(&self, key: &DeliveryKey) -> Result<(), CommitError> {
        self.close(key, Outcome::Replay).await?;
        if let Some(bus) = &self.bus {
            bus.poke();
        }
        Ok(())
    }

    /// Gives a dead or parked delivery up for good; it stays in the record, with `reason`.
    pub async fn discard(&self, key: &DeliveryKey, reason: String) -> Result<(), CommitError> {
        self.close(key, Outcome::Discarded { reason }).await
    }

    async fn close(&self, key: &DeliveryKey, outcome: Outcome) -> Result<(), CommitError> {
        let mut changes = ChangeSet::new();
        changes.close(key, outcome);
        // Somebody has decided, so nobody has to be called any more.
        match self.store.get::<Alert>(&alert_cause(key)).await {
            Ok(alert) => {
                if let Some(alert) = alert {
                    changes.delete(&alert);
                }
            }
            Err(problem) => warn!(
                "the alert of delivery `{key}` stands still: {}",
                Words::of(&problem)
            ),
        }
        self.store.commit(changes).await.map(drop)
    }
}

/// Takes every dead and parked delivery, the newest first.
fn newest() -> DeliveryFilter {
    DeliveryFilter {
        states: vec![DeliveryState::Dead, DeliveryState::Parked],
        newest_first: true,
        ..DeliveryFilter::default()
    }
}

/// Names the alert of a dead letter that somebody has to look at.
pub fn alert_cause(key: &DeliveryKey) -> String {
    format!("dead-letter/{key}")
}
