//! Publishes deliveries again that are due, open, and known to no inbox of this process.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_store::{DeliveryKey, OpenDelivery, Store, StoredEvent};
use tracing::{debug, info};

use super::link::Link;
use super::publisher::send;
use super::words::chain;
use crate::error::BusError;
use crate::hub::Hub;

/// How many open deliveries one sweep looks at.
const LIMIT: u32 = 1_000;

/// Counts how often each delivery was found waiting.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    found: HashMap<DeliveryKey, u32>,
}

impl Sweep {
    /// Looks once; what was found by the sweep before too is published again.
    pub(super) async fn run(
        &mut self,
        link: &Link,
        store: &Store,
        hub: &Arc<Hub>,
        position: Option<i64>,
    ) -> Result<(), BusError> {
        let Some(position) = position else {
            return Ok(());
        };
        let rows = store.open_deliveries(None, 0, LIMIT).await?;
        let known = |row: &OpenDelivery| {
            hub.get(&row.key.subscriber)
                .is_some_and(|shared| shared.queue().knows(row.key.sequence))
        };
        let waiting: Vec<OpenDelivery> = rows
            .into_iter()
            .filter(|row| row.key.sequence <= position && !known(row))
            .collect();
        let now = link.now();
        let mut published = HashSet::new();
        for (row, times) in self.overdue(waiting, now) {
            if !published.insert(row.event.id) {
                continue;
            }
            let id = format!("{}.{times}", row.event.id);
            // Whoever is absent for long has many of them; a line for each says no more than one for all.
            debug!(bus.delivery = %row.key, "publishing delivery `{}` again", row.key);
            let stored = StoredEvent {
                sequence: row.key.sequence,
                event: Arc::new(row.event),
                subscribers: Vec::new(),
            };
            let failed = |reason| BusError::Broker {
                action: format!("take event `{id}`"),
                reason,
            };
            let sent = send(link, &stored, position, &id).await;
            let acknowledged = sent.map_err(|error| failed(chain(&error)))?;
            acknowledged.await.map_err(|error| failed(chain(&error)))?;
        }
        if !published.is_empty() {
            info!(
                "published {} events again, which nobody has taken yet",
                published.len()
            );
        }
        Ok(())
    }

    /// Selects what to publish again: found 2, 4, 8 … times, so that a subscriber that never runs is no burden.
    fn overdue(
        &mut self,
        waiting: Vec<OpenDelivery>,
        now: DateTime<Utc>,
    ) -> Vec<(OpenDelivery, u32)> {
        let before = std::mem::take(&mut self.found);
        waiting
            .into_iter()
            .filter(|row| row.due <= now)
            .filter_map(|row| {
                let times = before.get(&row.key).copied().unwrap_or(0) + 1;
                self.found.insert(row.key.clone(), times);
                (times > 1 && times.is_power_of_two()).then_some((row, times - 1))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use ropewalk_schemas::{CloudEvent, ComponentName, Priority, Subject};
    use uuid::Uuid;

    use super::*;

    fn row(sequence: i64, due: DateTime<Utc>) -> OpenDelivery {
        let id = Uuid::from_u128(u128::from(sequence.unsigned_abs()));
        OpenDelivery {
            key: DeliveryKey {
                sequence,
                subscriber: ComponentName::parse("build").unwrap(),
            },
            event: CloudEvent {
                dataref: None,
                specversion: "1.0".to_owned(),
                id: id.into(),
                source: ComponentName::parse("people").unwrap(),
                event_type: "build.stop".to_owned(),
                subject: Subject::parse("build/1").unwrap(),
                time: DateTime::UNIX_EPOCH,
                schemaversion: 1,
                correlationid: id.into(),
                causationid: None,
                hop: 0,
                traceparent: None,
                priority: Priority::DEFAULT,
                data: serde_json::json!({}),
            },
            attempts: 0,
            due,
            last_error: None,
        }
    }

    #[test]
    fn a_delivery_is_published_again_at_growing_intervals_while_it_waits() {
        let now = DateTime::UNIX_EPOCH;
        let mut sweep = Sweep::default();
        let republished: Vec<u32> = (1..=9)
            .flat_map(|_| sweep.overdue(vec![row(1, now)], now))
            .map(|(_, times)| times)
            .collect();
        assert_eq!(republished, [1, 3, 7]);
        assert!(sweep.overdue(vec![], now).is_empty());
        assert!(
            sweep.overdue(vec![row(1, now)], now).is_empty(),
            "counted anew"
        );
        let later = now + TimeDelta::seconds(1);
        for _ in 0..4 {
            assert!(sweep.overdue(vec![row(2, later)], now).is_empty());
        }
    }
}
