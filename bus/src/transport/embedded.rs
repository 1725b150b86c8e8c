//! Follows the commits of this process: no broker, no message, no polling.

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::ComponentName;
use ropewalk_store::{Store, Subscription};
use tracing::debug;

use super::{Transport, TransportStatus};
use crate::error::BusError;
use crate::hub::Hub;
use crate::inbox::queue::ReadScope;

/// Wakes inboxes from the feed of commits.
#[derive(Debug)]
pub(crate) struct EmbeddedTransport;

impl EmbeddedTransport {
    /// Begins to follow the commits of this process.
    pub(crate) async fn start(
        store: &Store,
        hub: &Arc<Hub>,
        supervisor: &Supervisor,
    ) -> Result<Self, BusError> {
        let mut feed = store.feed();
        let mut last = store.last_sequence().await?;
        let hub = Arc::clone(hub);
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("bus.follow", async move {
            loop {
                let item = tokio::select! {
                    () = stop.cancelled() => return,
                    item = feed.next() => item,
                };
                match item {
                    None => return,
                    Some(Err(lagged)) => {
                        // Nothing is lost: other processes commit as well, and what they do is read from the store.
                        debug!(bus.missed = lagged.0, "reads the store: {lagged}");
                        hub.want(ReadScope::Newer);
                    }
                    Some(Ok(committed)) => {
                        let sequences = committed.events.iter().map(|event| event.sequence);
                        if sequences
                            .clone()
                            .min()
                            .is_some_and(|first| first > last + 1)
                        {
                            // Another process committed in between, and its events come first.
                            hub.want(ReadScope::Newer);
                        }
                        last = sequences.fold(last, i64::max);
                        hub.dispatch(&committed);
                    }
                }
            }
        });
        Ok(Self)
    }
}

#[async_trait]
impl Transport for EmbeddedTransport {
    async fn attach(&self, _subscription: &Subscription) -> Result<(), BusError> {
        Ok(())
    }

    fn detach(&self, _subscriber: &ComponentName) {}

    async fn settled(&self, _subscriber: &ComponentName, _sequence: i64) {}

    fn held(&self, _subscriber: &ComponentName) -> Vec<i64> {
        Vec::new()
    }

    async fn sweep(&self) {}

    fn poke(&self) {}

    async fn flush(&self) {}

    fn status(&self) -> TransportStatus {
        TransportStatus::Up
    }
}
