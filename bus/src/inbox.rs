//! Hands out the deliveries of one subscriber.

mod delivery;
pub(crate) mod queue;

use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::{Backoff, Clock, Ids};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{ComponentName, Event, Slug};
use ropewalk_store::{ChangeSet, Outcome, ReadError, Store};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::hub::{Hub, SubscriberQueue};
use crate::sharing::Shares;
use crate::transport::Transport;
use delivery::Claim;
pub use delivery::{Delivery, Failure};
use queue::{Entry, ReadScope};

/// How many deliveries one read of the store brings.
const PAGE: u32 = 512;
/// How long to wait after a failed read of the store.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What an inbox and its deliveries work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) stop: CancellationToken,
    pub(crate) backoff: Backoff,
    pub(crate) tries: u32,
    /// The idea whose deliveries are handed out until another process pokes; none for those of all.
    pub(crate) only: Option<Slug>,
    /// Where other processes take the same subscribers.
    pub(crate) shares: Option<Arc<Shares>>,
}

/// Hands out the open deliveries of one subscriber, each once until it is settled.
///
/// Of one entity only the earliest open delivery is handed out; between entities the most urgent goes first, then the
/// oldest. No more are unfinished at once than the consumer's bound.
#[derive(Debug)]
pub struct Inbox {
    shared: Arc<SubscriberQueue>,
    context: Arc<Context>,
}

impl Inbox {
    pub(crate) fn new(shared: Arc<SubscriberQueue>, context: Arc<Context>) -> Self {
        Self { shared, context }
    }

    /// Returns whose inbox it is.
    pub fn subscriber(&self) -> &ComponentName {
        &self.shared.subscriber
    }

    /// Returns how many deliveries are handed out and unfinished.
    pub fn in_flight(&self) -> usize {
        self.shared.queue().in_flight()
    }

    /// Returns how many open deliveries are known, those in flight included.
    pub fn backlog(&self) -> usize {
        self.shared.queue().len()
    }

    /// Waits for the next delivery; `None` once the process is asked to stop. May be cancelled at any point.
    pub async fn next(&mut self) -> Option<Delivery> {
        let shared = Arc::clone(&self.shared);
        loop {
            if self.context.stop.is_cancelled() {
                return None;
            }
            let wanted = shared.queue().wanted();
            if let Some(wanted) = wanted {
                self.pause_after(self.read(wanted).await).await;
                continue;
            }
            let contested = shared.queue().take_contested();
            if !contested.is_empty() {
                self.pause_after(self.look(&contested).await).await;
                continue;
            }
            if shared.yields {
                tokio::select! {
                    () = self.context.hub.relief() => {}
                    () = self.context.stop.cancelled() => continue,
                }
            }
            let taken = shared.queue().take(self.context.clock.now());
            match taken {
                Some(entry) => {
                    if let Some(delivery) = self.hand_out(entry).await {
                        return Some(delivery);
                    }
                }
                None => self.wait().await,
            }
        }
    }

    /// Hands out the delivery `sequence` before all others, if it is the first of its entity and may be handled now.
    pub async fn this_one(&mut self, sequence: i64) -> Option<Delivery> {
        let wanted = self.shared.queue().wanted();
        if let Some(wanted) = wanted {
            self.pause_after(self.read(wanted).await).await;
        }
        let entry = {
            let now = self.context.clock.now();
            self.shared.queue().take_one(sequence, now)?
        };
        self.hand_out(entry).await
    }

    /// Makes sure of an entry that was taken, and opens it.
    async fn hand_out(&self, entry: Entry) -> Option<Delivery> {
        // The claim gives the entry back if this call is cancelled.
        let mut claim = Claim::new(
            Arc::clone(&self.shared),
            Arc::clone(&self.context),
            entry.sequence,
            entry.attempts,
        );
        if claim.secure().await {
            self.open(entry, claim).await
        } else {
            None
        }
    }

    /// Waits until the queue may have something: a signal, a delivery coming due, or the end.
    async fn wait(&self) {
        let next_due = self.shared.queue().next_due();
        let due = async {
            match next_due {
                Some(due) => self.context.clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.changed.notified() => {}
            () = due => {}
            () = self.context.stop.cancelled() => {}
        }
    }

    async fn pause_after(&self, read: Result<(), ReadError>) {
        if let Err(error) = read {
            error!(
                bus.subscriber = %self.shared.subscriber,
                "cannot read the deliveries of `{}`: {}", self.shared.subscriber, Words::of(&error)
            );
            tokio::select! {
                () = self.context.clock.sleep(READ_AGAIN_AFTER) => {}
                () = self.context.stop.cancelled() => {}
            }
        }
    }

    async fn read(&self, wanted: ReadScope) -> Result<(), ReadError> {
        let subscriber = &self.shared.subscriber;
        let held = self.context.transport.held(subscriber);
        let mut after = self.shared.queue().begin_read(wanted);
        let complete = loop {
            let page = self
                .context
                .store
                .open_deliveries(Some(subscriber), after, PAGE)
                .await?;
            let last = page.last().map(|row| row.key.sequence);
            let full = page.len() >= PAGE as usize;
            let entries = page
                .into_iter()
                .map(|row| {
                    let event = Arc::new(row.event);
                    Entry::new(row.key.sequence, event, row.attempts, Some(row.due))
                })
                .collect();
            let room = self.shared.queue().add_page(entries);
            match last {
                Some(last) if full && room => after = last,
                _ => break !full,
            }
        };
        self.shared.queue().end_read(complete);
        self.context.hub.ease();
        if complete {
            self.let_go(held).await;
        }
        Ok(())
    }

    /// Learns how deliveries stand that other processes have or had.
    async fn look(&self, contested: &[i64]) -> Result<(), ReadError> {
        let Some(shares) = &self.context.shares else {
            return Ok(());
        };
        let standings = match shares.look(&self.shared.subscriber, contested).await {
            Ok(standings) => standings,
            Err(problem) => {
                self.shared.queue().others_committed();
                return Err(problem);
            }
        };
        let now = self.context.clock.now();
        for standing in &standings {
            let wait = match standing.held {
                Some(held) => Some(held.min(shares.claim_lasts)),
                // The end of the earlier one is told; should it not be, this is soon enough.
                None if standing.behind => Some(shares.claim_lasts),
                None => None,
            };
            self.shared
                .queue()
                .stands(standing, wait.map(|wait| now + wait));
        }
        let open = |sequence: &i64| standings.iter().any(|found| found.sequence == *sequence);
        for sequence in contested.iter().copied().filter(|at| !open(at)) {
            self.shared.queue().settle(sequence);
            let transport = &self.context.transport;
            transport.settled(&self.shared.subscriber, sequence).await;
        }
        self.context.hub.ease();
        Ok(())
    }

    /// Settles messages that have no open delivery: handled long ago, or not for this subscriber.
    async fn let_go(&self, held: Vec<i64>) {
        for sequence in held {
            let known = self.shared.queue().knows(sequence);
            if !known {
                let transport = &self.context.transport;
                transport.settled(&self.shared.subscriber, sequence).await;
            }
        }
    }

    /// Turns an entry into a delivery, or parks what cannot be understood.
    async fn open(&self, entry: Entry, claim: Claim) -> Option<Delivery> {
        let event = match entry.body {
            Some(event) => event,
            None => match self.context.store.event(entry.event_id).await {
                Ok(Some(stored)) => stored.event,
                Ok(None) => {
                    self.park(&claim, "the event is gone from the store").await;
                    return None;
                }
                Err(error @ ReadError::Blob { .. }) => {
                    self.park(&claim, &Words::of(&error).to_string()).await;
                    return None;
                }
                Err(error) => {
                    warn!(
                        "cannot read event `{}`: {}",
                        entry.event_id,
                        Words::of(&error)
                    );
                    claim.put_back_later();
                    return None;
                }
            },
        };
        match Event::try_from(event.as_ref()) {
            Ok(event) => Some(Delivery::new(event, claim)),
            Err(reason) => {
                self.park(&claim, &reason.to_string()).await;
                None
            }
        }
    }

    async fn park(&self, claim: &Claim, reason: &str) {
        let mut changes = ChangeSet::new();
        let outcome = Outcome::Parked {
            reason: reason.to_owned(),
        };
        changes.close(claim.key(), outcome);
        match claim.commit(changes).await {
            Ok(_) => warn!(
                bus.delivery = %claim.key(),
                "parked delivery `{}`: {reason}", claim.key()
            ),
            Err(error) => {
                warn!(
                    "cannot park delivery `{}`: {}",
                    claim.key(),
                    Words::of(&error)
                );
                claim.put_back_later();
            }
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        debug!("inbox of `{}` closed", self.shared.subscriber);
        self.context.hub.remove(&self.shared.subscriber);
        self.context.transport.detach(&self.shared.subscriber);
    }
}
