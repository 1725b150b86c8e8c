//! Knows what the program died of: charges it at a start, and lets it go when it got further or ended.

mod suspects;

pub mod decide;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use ropewalk_schemas::ComponentName;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::deaths::Deaths;
use ropewalk_store::{
    ChangeSet, CommitError, DeliveryFilter, DeliveryKey, DeliveryState, Outcome, Query, ReadError,
    Store, Versioned,
};
use tracing::{error, warn};

use crate::context::Context;
use decide::{NOTHING, Verdict};
pub use suspects::Suspects;

/// Says why the deaths of the program could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum DeathsError {
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store refused the count.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Advice for DeathsError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Suspects {
    /// Charges what the process before had in hand, and sets aside the deliveries that are not to run again.
    ///
    /// What is no delivery is parked by whoever knows it, when it recovers.
    pub(crate) async fn charge(&self, context: &Context) -> Result<(), DeathsError> {
        let store = &context.store;
        let left = self
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let before: Vec<Deaths> = store
            .list::<Deaths>(Query::new())
            .await?
            .into_iter()
            .map(Versioned::into_inner)
            .collect();
        let mut hand = Vec::with_capacity(left.len());
        for held in left {
            if still_open(store, &held.entity).await? {
                hand.push(held);
            }
        }
        let judgement = decide::judge(&before, &hand, context.now());
        let mut standing: BTreeMap<String, Deaths> = before
            .into_iter()
            .map(|deaths| (deaths.entity.clone(), deaths))
            .collect();
        let mut changes = ChangeSet::new();
        let mut gone: BTreeSet<String> = judgement.acquitted.into_iter().collect();
        for deaths in &judgement.charged {
            warn!(suspect = %deaths.entity, "the program ended with `{}` in hand, {} in a row", deaths.entity, times(deaths.count));
            standing.insert(deaths.entity.clone(), deaths.clone());
        }
        for deaths in standing.values() {
            let Some(key) = delivery_of(&deaths.entity) else {
                continue;
            };
            if !still_open(store, &deaths.entity).await? {
                gone.insert(deaths.entity.clone());
            } else if decide::verdict(deaths.count) == Verdict::Parked {
                set_aside(&mut changes, &key, deaths, context);
                gone.insert(deaths.entity.clone());
            }
        }
        for deaths in judgement.charged {
            if !gone.contains(&deaths.entity) {
                changes.put(&deaths);
            }
        }
        for entity in gone {
            standing.remove(&entity);
            if let Some(row) = store.get::<Deaths>(&entity).await? {
                changes.delete(&row);
            }
        }
        if !changes.is_empty() {
            store.commit(changes).await?;
        }
        *self.standing() = standing;
        self.left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.in_hand.begin();
        Ok(())
    }

    /// Waits before anything is handed out, if something is to be tried alone.
    pub(crate) async fn keep_quiet(&self, context: &Context) {
        let Some(most) = self.alone().iter().map(|deaths| deaths.count).max() else {
            return;
        };
        let quiet = decide::quiet(most);
        warn!(
            "the program ended {} in a row with the same work in hand; it waits {quiet:?}, then tries that alone",
            times(most)
        );
        let mark = self.in_hand.hold(NOTHING, 0);
        context.clock.sleep(quiet).await;
        drop(mark);
    }
}

/// Returns the delivery that a suspect names.
pub(crate) fn delivery_of(entity: &str) -> Option<DeliveryKey> {
    let (sequence, subscriber) = entity.strip_prefix("delivery/")?.split_once('/')?;
    Some(DeliveryKey {
        sequence: sequence.parse().ok()?,
        subscriber: ComponentName::parse(subscriber).ok()?,
    })
}

/// Returns whether a note may be true: one of a delivery that was closed meanwhile is out of date.
async fn still_open(store: &Store, entity: &str) -> Result<bool, ReadError> {
    let Some(key) = delivery_of(entity) else {
        return Ok(true);
    };
    let filter = DeliveryFilter {
        subscriber: Some(key.subscriber.clone()),
        states: vec![DeliveryState::Open],
        after_sequence: Some(key.sequence - 1),
        limit: Some(1),
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(&filter).await?;
    Ok(rows.iter().any(|row| row.key == key))
}

/// Makes a dead letter of a delivery, and says so aloud: nobody can be asked about it.
fn set_aside(changes: &mut ChangeSet, key: &DeliveryKey, deaths: &Deaths, context: &Context) {
    let message = format!(
        "the program ended {} in a row while `{}` handled delivery {key}; mend the cause, then run `ropewalk dead-letter replay {key}`",
        times(deaths.count),
        key.subscriber
    );
    error!(bus.delivery = %key, "{message}");
    changes.put(&Alert {
        cause: ropewalk_bus::alert_cause(key),
        severity: Severity::Error,
        message: message.clone(),
        build: None,
        raised_at: context.now(),
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    });
    changes.close(key, Outcome::Dead { error: message });
}

/// Says how often.
pub fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}
