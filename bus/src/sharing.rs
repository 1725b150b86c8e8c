//! Shares subscribers with other processes: a delivery is handed out here only while this process has it claimed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::advice::Words;
use ropewalk_store::{Claims, CommitFeed, DeliveryKey, DeliveryPosition, ReadError, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::hub::Hub;

/// How long a process that gives no sign of life keeps its deliveries.
const CLAIM_LASTS: Duration = Duration::from_mins(1);

/// Says under which name a process shares subscribers with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingOptions {
    /// The name; no two processes that run may have the same one, and who comes after one that died has its deliveries.
    pub process: String,
    /// How long a process that gives no sign of life keeps its deliveries.
    pub claim_lasts: Duration,
}

impl SharingOptions {
    /// Shares under the name `process`.
    pub fn new(process: impl Into<String>) -> Self {
        Self {
            process: process.into(),
            claim_lasts: CLAIM_LASTS,
        }
    }
}

/// The deliveries that this process has.
#[derive(Debug)]
pub(crate) struct Shares {
    claims: Claims,
    pub(crate) claim_lasts: Duration,
    in_hand: Mutex<BTreeSet<DeliveryKey>>,
    freed: Notify,
}

impl Shares {
    pub(crate) fn new(store: &Store, sharing: &SharingOptions) -> Self {
        Self {
            claims: store.claims(&sharing.process, sharing.claim_lasts),
            claim_lasts: sharing.claim_lasts,
            in_hand: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Claims a delivery; answers how often it was tried, or `None` when it may not be handled here now.
    pub(crate) async fn take(&self, key: &DeliveryKey) -> Result<Option<u32>, ReadError> {
        let granted = self.claims.take(key).await?;
        if granted.is_some() {
            self.in_hand().insert(key.clone());
        }
        Ok(granted)
    }

    /// Says how those of the deliveries stand that are open still.
    pub(crate) async fn look(
        &self,
        subscriber: &ComponentName,
        sequences: &[i64],
    ) -> Result<Vec<DeliveryPosition>, ReadError> {
        self.claims.look(subscriber, sequences).await
    }

    /// Notes that a delivery is not handled here any more.
    pub(crate) fn let_go(&self, key: &DeliveryKey) {
        self.in_hand().remove(key);
        self.freed.notify_one();
    }

    /// Keeps what is in hand until `stop`, and after that until nothing is in hand any more; gives the rest back.
    pub(crate) async fn keep(self: Arc<Self>, clock: Clock, stop: CancellationToken) {
        loop {
            let freed = self.freed.notified();
            if stop.is_cancelled() && self.in_hand().is_empty() {
                break;
            }
            tokio::select! {
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = freed, if stop.is_cancelled() => {}
                () = clock.sleep(self.claim_lasts / 3) => self.renew().await,
            }
        }
        if let Err(problem) = self.claims.give_back().await {
            warn!(
                "the deliveries in hand could not be given back, others wait for them: {}",
                Words::of(&problem)
            );
        }
    }

    async fn renew(&self) {
        let keys: Vec<DeliveryKey> = self.in_hand().iter().cloned().collect();
        if keys.is_empty() {
            return;
        }
        if let Err(problem) = self.claims.renew(&keys).await {
            warn!(
                "the deliveries in hand could not be kept, others may take them: {}",
                Words::of(&problem)
            );
        }
    }

    fn in_hand(&self) -> MutexGuard<'_, BTreeSet<DeliveryKey>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the inboxes when other processes committed something: new deliveries, and the end of what they had.
pub(crate) async fn follow(hub: Arc<Hub>, mut feed: CommitFeed, stop: CancellationToken) {
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return,
            told = feed.next() => told,
        };
        match told {
            None => return,
            Some(Ok(_own)) => {}
            Some(Err(missed)) => {
                debug!("another process committed: {missed}");
                hub.others_committed();
            }
        }
    }
}
